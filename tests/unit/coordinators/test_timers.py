"""Timers with keys."""

from ottla.coordinators.timers import Timers


def test_timer_fires_once(world):
    """An action runs at its deadline and not again."""
    fired = []

    async def scenario():
        timers = Timers()
        timers.set("a", 1000, lambda: fired.append(world.clock.monotonic()))
        start = world.clock.monotonic()
        await world.clock.sleep(5)
        assert fired == [start + 1]
        assert len(timers) == 0

    world.loop.run(scenario())


def test_changed_deadline_replaces_the_old_one(world):
    """Setting a key again replaces its deadline, whether it is later or earlier."""
    fired = []

    async def scenario():
        timers = Timers()
        start = world.clock.monotonic()
        timers.set("later", 1000, lambda: fired.append("too early"))
        timers.set("later", 3000, lambda: fired.append(("later", world.clock.monotonic() - start)))
        timers.set("earlier", 3000, lambda: fired.append("too late"))
        timers.set(
            "earlier", 500, lambda: fired.append(("earlier", world.clock.monotonic() - start))
        )
        await world.clock.sleep(10)

    world.loop.run(scenario())
    assert fired == [("earlier", 0.5), ("later", 3.0)]


def test_cancelled_timer_does_not_fire(world):
    """Cancelling and closing remove deadlines; cancelling an unknown key is no error."""
    fired = []

    async def scenario():
        timers = Timers()
        timers.set("a", 100, lambda: fired.append("a"))
        timers.set("b", 100, lambda: fired.append("b"))
        timers.cancel("a")
        timers.cancel("nothing")
        timers.close()
        await world.clock.sleep(1)

    world.loop.run(scenario())
    assert fired == []


def test_action_can_set_its_own_key_again(world):
    """A timer can renew itself in its action."""
    fired = []

    async def scenario():
        timers = Timers()

        def again():
            fired.append(1)
            if len(fired) < 3:
                timers.set("a", 100, again)

        timers.set("a", 100, again)
        await world.clock.sleep(1)

    world.loop.run(scenario())
    assert fired == [1, 1, 1]
