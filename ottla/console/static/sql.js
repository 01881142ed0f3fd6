// The page of SQL: Ctrl+Enter runs, and a query that runs can be cancelled. The statement is sent beside the page, which
// stays as it is until the response arrives: the statement can be edited, and the button that cancels is never replaced.
"use strict";

(() => {
  const main = document.getElementById("main");
  const form = document.getElementById("query");
  const cancel = document.getElementById("query-cancel");
  const state = document.getElementById("query-state");
  const card = form.closest("section");
  const partial = document.getElementById("partial");
  const [run] = form.getElementsByTagName("button");
  const [stop] = cancel.getElementsByTagName("button");
  let runningId = "";

  // The first rows of the records that have been read so far, once a second.
  async function look(id) {
    try {
      const answer = await fetch(partial.dataset.url);
      const rows = answer.ok ? (await answer.json()).partial : null;
      if (runningId === id && rows) showPartial(rows);
    } catch { /* The query itself will fail, or not. */ }
    if (runningId === id) setTimeout(() => { if (runningId === id) look(id); }, 1000);
  }

  function line(kind, values) {
    const row = document.createElement("tr");
    row.append(...values.map((value) => {
      const cell = document.createElement(kind);
      cell.textContent = value === null ? "NULL" : value;
      return cell;
    }));
    return row;
  }

  function showPartial(rows) {
    partial.querySelector("p").textContent = rows.note;
    partial.querySelector("thead").replaceChildren(line("th", rows.columns));
    partial.querySelector("tbody").replaceChildren(...rows.rows.map((row) => line("td", row)));
    partial.hidden = false;
  }

  function setRunning(id) {
    runningId = id;
    partial.hidden = true;
    if (id) look(id);
    form.elements.query_id.value = id;
    run.disabled = id !== "";
    stop.disabled = false;
    cancel.hidden = id === "";
    state.textContent = id ? form.dataset.running : "";
  }

  function showAnswer(page) {
    const fresh = page.getElementById("main");
    const inside = page.getElementById("query")?.closest("section");
    if (!inside) return main.replaceChildren(...fresh.childNodes);
    form.querySelector(".notice.error")?.remove();
    const nodes = [...fresh.children];
    const at = nodes.indexOf(inside);
    for (const node of [...main.children]) if (node !== card && node !== partial) node.remove();
    card.before(...nodes.slice(0, at));
    partial.after(...nodes.slice(at + 1).filter((node) => node.id !== "partial"));
    ottla.prepare(main);
    ottla.placeError();
    // A reload shows the result again.
    if (document.getElementById("result")) history.replaceState(null, "", `${location.pathname}?last=1`);
  }

  async function execute() {
    // An id without a secure context, which crypto.randomUUID needs.
    setRunning([...crypto.getRandomValues(new Uint32Array(4))].join("-"));
    let problem = "";
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(location.pathname, { method: "POST", body, redirect: "manual" });
      if (answer.type === "opaqueredirect") return location.reload();
      if (answer.status === 503) problem = form.dataset.unreachable;
      else showAnswer(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      problem = form.dataset.unreachable;
    }
    setRunning("");
    state.textContent = problem;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!run.disabled) execute();
  });
  form.elements.sql.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  // The id makes the cancel count for this query only, even if it arrives before the statement or after its result.
  cancel.addEventListener("submit", async (event) => {
    if (!runningId) return;
    event.preventDefault();
    const id = runningId;
    stop.disabled = true;
    state.textContent = form.dataset.cancelling;
    const address = `/api/v1/clusters/${encodeURIComponent(document.body.dataset.cluster)}/sql/cancel`;
    const headers = { "content-type": "application/json", "x-csrf-token": form.elements.csrf.value };
    try {
      const answer = await fetch(address, { method: "POST", headers, body: JSON.stringify({ query_id: id }) });
      await answer.text();
      if (answer.ok) return;
    } catch { /* The button works again. */ }
    if (runningId !== id) return;
    stop.disabled = false;
    state.textContent = form.dataset.running;
  });
})();
