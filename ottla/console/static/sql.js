// The page of SQL: Ctrl+Enter runs, and a query that runs can be cancelled.
"use strict";

(() => {
  const form = document.getElementById("query");
  const cancel = document.getElementById("query-cancel");
  const state = document.getElementById("query-state");

  form.addEventListener("submit", () => {
    state.textContent = form.dataset.running;
    form.querySelector("button").disabled = true;
    cancel.hidden = false;
  });
  form.elements.sql.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  // Sent beside the page that is loading, so that its answer arrives: the reason of the end.
  cancel.addEventListener("submit", (event) => {
    if (!form.querySelector("button").disabled) return;
    event.preventDefault();
    fetch(location.href, { method: "POST", body: new URLSearchParams(new FormData(cancel)), redirect: "manual" });
  });
})();
