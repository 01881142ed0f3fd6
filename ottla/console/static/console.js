// Keyboard, search, times of the reader's time zone, and pages that refresh themselves.
// Every page works without this file, except live tail and charts.
"use strict";

(() => {
  const cluster = document.body.dataset.cluster;
  const main = document.getElementById("main");
  const isTyping = (node) => node && (node.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(node.tagName));

  // -- Parts of a page that need a script: called again after each refresh.
  function pad(number, digits = 2) { return String(number).padStart(digits, "0"); }

  function localTime(node) {
    const at = new Date(node.getAttribute("datetime"));
    if (isNaN(at)) return;
    node.title = node.getAttribute("datetime");
    node.textContent = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ` +
      `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
  }

  // Times are typed in the reader's zone, which the form names and sends.
  function ownZone(input) {
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!zone || zone === "Etc/UTC") return;
    input.value = zone;
    for (const node of input.form.querySelectorAll("[data-zone]")) node.textContent = zone;
  }

  function confirmable(form) {
    const input = form.querySelector("[name=confirmation]");
    const button = form.querySelector("button.danger");
    const check = () => { button.disabled = input.value !== form.dataset.confirm; };
    input.addEventListener("input", check);
    check();
  }

  function filterable(input) {
    const rows = document.querySelectorAll(`#${input.dataset.filter} tbody tr`);
    const apply = () => {
      const text = input.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(text);
    };
    input.addEventListener("input", apply);
    apply();
  }

  // The error of a form is shown in it, unless several forms of the page have its action.
  function placeError() {
    const error = main.querySelector(".notice.error[data-action]");
    const forms = [...main.querySelectorAll("form[method=post]")].filter((form) =>
      [...form.querySelectorAll("[name=action]")].some((node) => node.value === error?.dataset.action));
    if (forms.length !== 1) return;
    for (let node = forms[0]; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    forms[0].prepend(error);
    error.scrollIntoView({ block: "center" });
  }

  function prepare(root) {
    root.querySelectorAll("time[datetime]").forEach(localTime);
    root.querySelectorAll("input[data-own-zone]").forEach(ownZone);
    root.querySelectorAll("form[data-confirm]").forEach(confirmable);
    root.querySelectorAll("input[data-filter]").forEach(filterable);
    root.querySelectorAll("select[data-go]").forEach((node) => node.addEventListener("change", () => node.form.submit()));
    // A text area names the kind of field that is shown: `data-shows="VALUE"` in a select's form.
    root.querySelectorAll("[data-shown-for]").forEach((node) => {
      const [name, ...values] = node.dataset.shownFor.split(" ");
      const select = node.closest("form").elements[name];
      const apply = () => { node.hidden = !values.includes(select.value); };
      select.addEventListener("change", apply);
      apply();
    });
    document.dispatchEvent(new CustomEvent("ottla:page", { detail: root }));
  }

  // -- Refresh: the same page is read again; forms and selections of the reader are left alone.
  function isInUse() {
    if (document.hidden || document.querySelector("dialog[open]")) return true;
    if (main.contains(document.activeElement) && isTyping(document.activeElement)) return true;
    if (String(getSelection()) !== "") return true;
    return [...main.querySelectorAll("form input:not([type=hidden]), form textarea, form select")].some(
      (node) => !node.closest("form[method=get]") && isChanged(node));
  }

  function isChanged(node) {
    if (node.tagName === "SELECT") {
      const chosen = [...node.options].findIndex((option) => option.defaultSelected);
      return !node.multiple && node.selectedIndex !== Math.max(chosen, 0);
    }
    return node.value !== node.defaultValue || node.checked !== node.defaultChecked;
  }

  function lost(isLost) {
    let mark = document.getElementById("lost");
    main.classList.toggle("stale", isLost);
    if (isLost && !mark) {
      mark = document.createElement("p");
      mark.id = "lost";
      mark.className = "notice error";
      mark.setAttribute("role", "alert");
      mark.textContent = document.body.dataset.lost;
      main.prepend(mark);
    } else if (!isLost && mark) {
      mark.remove();
    }
  }

  function replaceMain(page) {
    const fresh = page.getElementById("main");
    if (!fresh) return;
    const open = [...main.querySelectorAll("details")].map((node) => node.open);
    const filters = [...main.querySelectorAll("input[data-filter]")].map((node) => node.value);
    const charts = [...main.querySelectorAll(".chart")];
    const focused = main.contains(document.activeElement) && document.activeElement.getAttribute("href");
    main.replaceChildren(...fresh.childNodes);
    main.querySelectorAll("details").forEach((node, index) => { if (open[index] !== undefined) node.open = open[index]; });
    main.querySelectorAll("input[data-filter]").forEach((node, index) => { node.value = filters[index] || ""; });
    // Charts keep their points.
    main.querySelectorAll(".chart").forEach((node, index) => { if (charts[index]) node.replaceWith(charts[index]); });
    if (focused) main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
    prepare(main);
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { headers: { "x-refresh": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) return location.reload();
      if (answer.status === 503) return lost(true);
      lost(false);
      if (answer.ok && !isInUse()) replaceMain(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      lost(true);
    }
  }

  const seconds = Number(main?.dataset.refreshS || 0);
  if (seconds > 0) {
    const again = () => setTimeout(async () => { if (!isInUse()) await refresh(); again(); }, seconds * 1000);
    again();
  }

  // -- Search.
  const dialog = document.getElementById("search");
  const text = document.getElementById("search-text");
  const results = document.getElementById("search-results");
  let asked = 0;

  async function search() {
    const number = ++asked;
    const answer = await fetch(`/c/${encodeURIComponent(cluster)}/search.json?q=${encodeURIComponent(text.value)}`);
    const found = answer.ok ? (await answer.json()).results : [];
    if (number !== asked) return;
    results.replaceChildren(...found.map((item) => {
      const line = document.createElement("li");
      const link = document.createElement("a");
      const kind = document.createElement("span");
      link.href = item.url;
      link.textContent = item.name;
      kind.textContent = item.kind;
      link.append(kind);
      line.append(link);
      return line;
    }));
    if (!found.length) {
      const line = document.createElement("li");
      line.className = "empty";
      line.textContent = document.body.dataset.nothing;
      results.append(line);
    }
  }

  function openSearch() {
    if (!cluster) return;
    dialog.showModal();
    text.select();
    search();
  }

  if (dialog) {
    document.getElementById("search-open")?.addEventListener("click", openSearch);
    text.addEventListener("input", search);
    text.addEventListener("keydown", (event) => { if (event.key === "Enter") results.querySelector("a")?.click(); });
    dialog.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      const links = [text, ...results.querySelectorAll("a")];
      const at = links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
      links[Math.max(0, Math.min(links.length - 1, at))].focus();
      event.preventDefault();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  }

  // -- Keyboard: `/`, and `g` with the letter of a section.
  let isGo = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || dialog?.open) return;
    if (isGo) {
      isGo = false;
      document.querySelector(`.side a[data-key="${CSS.escape(event.key)}"]`)?.click();
    } else if (event.key === "/") {
      event.preventDefault();
      openSearch();
    } else if (event.key === "?") {
      location.href = cluster ? `/shortcuts?of=${encodeURIComponent(cluster)}` : "/shortcuts";
    } else if (event.key === "g") {
      isGo = true;
      setTimeout(() => { isGo = false; }, 1500);
    }
  });

  // -- Menus close when the reader looks elsewhere.
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // -- A narrow window shows a part of the navigation: the one with the section of the page.
  const side = document.querySelector(".side");
  const current = side?.querySelector("[aria-current]");
  if (current && side.scrollWidth > side.clientWidth) side.scrollLeft = current.offsetLeft - (side.clientWidth - current.offsetWidth) / 2;

  window.ottla = { prepare, placeError };
  if (main) {
    prepare(document);
    placeError();
  }
})();
