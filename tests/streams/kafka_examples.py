"""Well-known examples of Kafka Streams, ported line by line by converting names to snake_case.

`test_kafka_examples.py` runs them, and `test_typing.py` checks them with mypy.
"""

from typing import Any

from ottla.streams import (
    Consumed,
    Grouped,
    Joined,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    Windowed,
)


def word_count() -> Topology:
    """Count words (WordCountLambdaExample)."""
    builder = StreamsBuilder()
    lines = builder.stream("lines", Consumed.with_(Serdes.string(), Serdes.string()))
    counts = (
        lines.flat_map_values(lambda value: value.lower().split())
        .group_by(lambda key, word: word)
        .count(Materialized.as_("counts-store"))
    )
    counts.to_stream().to("word-counts", Produced.with_(Serdes.string(), Serdes.long()))
    return builder.build()


def page_view_region() -> Topology:
    """Count page views by region in hopping windows (PageViewRegionLambdaExample)."""
    builder = StreamsBuilder()
    string_serde = Serdes.string()
    views = builder.stream("PageViews", Consumed.with_(Serdes.string(), Serdes.json(dict)))
    user_profiles = builder.table("UserProfiles", Consumed.with_(string_serde, Serdes.json(dict)))
    views_by_user = views.map(lambda dummy, record: (record["user"], record["page"]))
    user_regions = user_profiles.map_values(lambda record: str(record["region"]))
    views_by_region = (
        views_by_user.left_join(
            user_regions,
            lambda page, region: f"{region}:{page}",
            Joined.with_(string_serde, string_serde, string_serde),
        )
        .map(lambda user, region_page: (region_page.split(":")[0], region_page))
        .group_by_key(Grouped.with_(string_serde, string_serde))
        .windowed_by(TimeWindows.of_size_with_no_grace("5 min").advance_by("1 min"))
        .count()
    )
    views_by_region.to_stream(lambda windowed_region, count: str(windowed_region)).to(
        "PageViewsByRegion", Produced.with_(string_serde, Serdes.long())
    )
    return builder.build()


def top_articles() -> Topology:
    """Rank articles by views, by industry and hour (TopArticlesExampleDriver)."""
    builder = StreamsBuilder()
    views = builder.stream("page-views", key=Serdes.bytes(), value=Serdes.json(dict))
    article_views = views.filter(lambda dummy, record: record["flags"] == "ARTICLE").map(
        lambda dummy, article: ({"page": article["page"], "industry": article["industry"]}, article)
    )
    view_counts = (
        article_views.group_by_key(Grouped.with_(Serdes.json(dict), Serdes.json(dict)))
        .windowed_by(TimeWindows.of_size_with_no_grace("1 h"))
        .count()
    )

    def add(agg_key: Any, value: Any, aggregate: list[Any]) -> list[Any]:
        return sorted([*aggregate, value], key=lambda v: (-v["count"], v["page"]))

    def sub(agg_key: Any, value: Any, aggregate: list[Any]) -> list[Any]:
        return [x for x in aggregate if x != value]

    all_view_counts = view_counts.group_by(
        lambda windowed_article, count: (
            Windowed(windowed_article.key["industry"], windowed_article.window),
            {"page": windowed_article.key["page"], "count": count},
        ),
        Grouped.with_(Serdes.time_windowed(Serdes.string(), 3600_000), Serdes.json(dict)),
    ).aggregate(
        list,
        add,
        sub,
        Materialized.with_(Serdes.time_windowed(Serdes.string(), 3600_000), Serdes.json(list)),
    )
    top = all_view_counts.map_values(lambda queue: "\n".join(str(x["page"]) for x in queue[:100]))
    top.to_stream().to(
        "TopNewsPerIndustry",
        Produced.with_(Serdes.time_windowed(Serdes.string(), 3600_000), Serdes.string()),
    )
    return builder.build()


def anomaly() -> Topology:
    """Find users who click three times in a minute (AnomalyDetectionLambdaExample)."""
    builder = StreamsBuilder()
    views = builder.stream("UserClicks", Consumed.with_(Serdes.string(), Serdes.string()))
    anomalous_users = (
        views.map(lambda ignored, username: (username, username))
        .group_by_key()
        .windowed_by(TimeWindows.of_size_with_no_grace("1 min"))
        .count()
        .filter(lambda windowed_user_id, count: count >= 3)
    )
    out = (
        anomalous_users.to_stream()
        .filter(lambda windowed_user_id, count: count is not None)
        .map(lambda windowed_user_id, count: (str(windowed_user_id), count))
    )
    out.to("AnomalousUsers", Produced.with_(Serdes.string(), Serdes.long()))
    return builder.build()


def sum_() -> Topology:
    """Add odd numbers (SumLambdaExample)."""
    builder = StreamsBuilder()
    numbers = builder.stream("numbers", Consumed.with_(Serdes.integer(), Serdes.integer()))
    total = (
        numbers.filter(lambda k, v: v % 2 != 0)
        .select_key(lambda k, v: 1)
        .group_by_key()
        .reduce(lambda v1, v2: v1 + v2)
    )
    total.to_stream().to("sum-odd", Produced.with_(Serdes.integer(), Serdes.integer()))
    return builder.build()


def sessions() -> Topology:
    """Count plays by session (SessionWindowsExample)."""
    builder = StreamsBuilder()
    (
        builder.stream("play-events", Consumed.with_(Serdes.string(), Serdes.json(dict)))
        .group_by_key(Grouped.with_(Serdes.string(), Serdes.json(dict)))
        .windowed_by(SessionWindows.of_inactivity_gap_and_grace("30 min", "30 min"))
        .count(
            Materialized.as_("play-events-per-session")
            .with_key_serde(Serdes.string())
            .with_value_serde(Serdes.long())
        )
        .to_stream()
        .map(lambda key, value: (f"{key.key}@{key.window.start}->{key.window.end}", value))
        .to("sessions", Produced.with_(Serdes.string(), Serdes.long()))
    )
    return builder.build()


def global_tables() -> Topology:
    """Enrich orders with two global tables (GlobalKTablesExample)."""
    builder = StreamsBuilder()
    orders = builder.stream("order", Consumed.with_(Serdes.long(), Serdes.json(dict)))
    customers = builder.global_table(
        "customer",
        Materialized.as_("customer-store")
        .with_key_serde(Serdes.long())
        .with_value_serde(Serdes.json(dict)),
    )
    products = builder.global_table(
        "product",
        Materialized.as_("product-store")
        .with_key_serde(Serdes.long())
        .with_value_serde(Serdes.json(dict)),
    )
    customer_orders = orders.join(
        customers,
        lambda order_id, order: order["customer"],
        lambda order, customer: {"customer": customer, "order": order},
    )
    enriched = customer_orders.join(
        products,
        lambda order_id, co: co["order"]["product"],
        lambda co, product: {**co, "product": product},
    )
    enriched.to("enriched-order", Produced.with_(Serdes.long(), Serdes.json(dict)))
    return builder.build()


def interactive() -> Topology:
    """Keep counts of words, also by window, for queries (WordCountInteractiveQueriesExample)."""
    builder = StreamsBuilder()
    text_lines = builder.stream("TextLines", Consumed.with_(Serdes.string(), Serdes.string()))
    grouped = text_lines.flat_map_values(lambda v: v.lower().split()).group_by(
        lambda k, word: word, Grouped.with_(Serdes.string(), Serdes.string())
    )
    grouped.count(Materialized.as_("word-count").with_value_serde(Serdes.long()))
    grouped.windowed_by(TimeWindows.of_size_with_no_grace("1 min")).count(
        Materialized.as_("windowed-word-count").with_value_serde(Serdes.long())
    )
    return builder.build()
