// Search through all records and live tail: rows arrive as events, at most MAX_ROWS are kept.
"use strict";

(() => {
  const MAX_ROWS = 1000;
  const rows = document.getElementById("rows");
  const state = document.getElementById("state");
  const words = JSON.parse(state.dataset.words);
  const progress = document.getElementById("progress");
  const stop = document.getElementById("stop");
  let stream = null;

  function end(text) {
    stream?.close();
    stream = null;
    stop.hidden = true;
    progress.hidden = true;
    if (text !== undefined) state.textContent = text;
  }

  function add(html, isNewestFirst) {
    const template = document.createElement("template");
    template.innerHTML = `<table><tbody>${html}</tbody></table>`;
    const body = template.content.querySelector("tbody");
    window.ottla.prepare(body);
    const fresh = [...body.children];
    if (isNewestFirst) rows.prepend(...fresh.reverse());
    else rows.append(...fresh);
    while (rows.children.length > MAX_ROWS) (isNewestFirst ? rows.lastElementChild : rows.firstElementChild).remove();
  }

  function query() {
    const form = new FormData(document.getElementById("filter"));
    return new URLSearchParams([...form].filter(([, value]) => value !== "")).toString();
  }

  function start(button, isTail) {
    end("");
    document.getElementById("no-rows")?.remove();
    document.getElementById("more")?.remove();
    rows.replaceChildren();
    stop.hidden = false;
    progress.hidden = isTail;
    progress.value = 0;
    if (isTail) state.textContent = words.waiting;
    stream = new EventSource(`${button.dataset.url}?${query()}`);
    stream.addEventListener("records", (event) => {
      const data = JSON.parse(event.data);
      if (data.count) add(data.html, isTail);
    });
    stream.addEventListener("progress", (event) => {
      const data = JSON.parse(event.data);
      progress.max = Math.max(1, data.total);
      progress.value = data.scanned;
      state.textContent = words.scanned.replace(/{(\w+)}/g, (_, name) => Number(data[name]).toLocaleString());
    });
    stream.addEventListener("end", (event) => {
      const { note } = JSON.parse(event.data);
      end(note ? `${state.textContent} · ${note}` : undefined);
    });
    stream.addEventListener("failed", (event) => end(JSON.parse(event.data).reason));
    // A stream that ends without `end` is lost: it is not read again by itself.
    stream.onerror = () => end(words.lost);
  }

  const all = document.getElementById("search-all");
  const tail = document.getElementById("tail");
  all.addEventListener("click", () => start(all, false));
  tail.addEventListener("click", () => start(tail, true));
  stop.addEventListener("click", () => end(words.stopped));
  addEventListener("pagehide", () => end());
})();
