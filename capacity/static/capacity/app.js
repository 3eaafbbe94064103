// The frame: ages that count, polls that stop after failures, the search key, the theme, the folded menu.
"use strict";
(() => {
  const VISIBLE_MS = 5000, HIDDEN_MS = 30000, MOST_FAILURES = 5;
  const body = document.body;
  let failures = 0, timer = 0;

  const words = (seconds) => {
    for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]])
      if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit}`;
    return `${Math.max(0, Math.floor(seconds))} s`;
  };

  const count = () => {
    const now = Date.now();
    for (const mark of document.querySelectorAll("time[data-ago]")) {
      const text = words((now - Date.parse(mark.dateTime)) / 1000);
      const full = mark.dataset.ago ? `${text} ${mark.dataset.ago}` : text;
      if (mark.textContent !== full) mark.textContent = full;
    }
    const bar = document.getElementById("topbar"), pass = bar && bar.querySelector("[data-pass]");
    if (pass) body.classList.toggle("late", (now - Date.parse(pass.dataset.pass)) / 1000 > Number(bar.dataset.lateAfter));
  };
  setInterval(count, 1000);

  const poll = () => {
    clearTimeout(timer);
    const asked = document.querySelector("[data-poll]");
    if (asked && failures < MOST_FAILURES) htmx.trigger(asked, "llmgw:poll");
    timer = setTimeout(poll, document.hidden ? HIDDEN_MS : VISIBLE_MS);
  };

  const showStopped = () => {
    const button = document.querySelector("[data-resume]");
    if (button) button.hidden = failures < MOST_FAILURES;
  };
  const failed = () => { failures += 1; showStopped(); };

  body.addEventListener("htmx:configRequest", (event) => {
    const bar = document.getElementById("topbar");
    if (bar && event.target.matches("[data-poll]")) event.detail.parameters.seen = bar.dataset.seen;
  });
  body.addEventListener("htmx:responseError", failed);
  body.addEventListener("htmx:sendError", failed);
  body.addEventListener("htmx:timeout", failed);
  body.addEventListener("htmx:afterRequest", (event) => {
    const request = event.detail.xhr;
    if (!event.detail.successful) return;
    // signed out meanwhile: the answer is the sign-in page, not a part of this one
    if (request.responseURL && new URL(request.responseURL).pathname !== new URL(event.detail.pathInfo.requestPath, location).pathname) {
      location.reload();
      return;
    }
    failures = 0;
    showStopped();
    if (request.status === 200) document.dispatchEvent(new Event("llmgw:passed"));
  });

  // Rows never jump: a refreshed table keeps the order on the screen, new rows come last.
  body.addEventListener("htmx:oobBeforeSwap", (event) => {
    const before = event.detail.target, fragment = event.detail.fragment;
    before.querySelectorAll("details[id][open]").forEach((open) => {
      const same = fragment.querySelector(`#${CSS.escape(open.id)}`);
      if (same) same.open = true;
    });
    const old = [...before.querySelectorAll("table[data-steady] tbody")];
    [...fragment.querySelectorAll("table[data-steady] tbody")].forEach((rows, index) => old[index] && steady(old[index], rows));
    if (before.contains(document.activeElement) && document.activeElement.matches("input, select, summary")) event.detail.shouldSwap = false;
  });
  const steady = (old, rows) => {
    const place = new Map([...old.children].map((row, index) => [row.dataset.key, index]));
    const rank = (row) => place.has(row.dataset.key) ? place.get(row.dataset.key) : Infinity;
    [...rows.children].sort((a, b) => rank(a) - rank(b) || 0).forEach((row) => rows.append(row));
  };

  body.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest(selector);
    const menu = on("[data-menu]");
    if (menu) menu.setAttribute("aria-expanded", String(menu.getAttribute("aria-expanded") !== "true"));
    if (on("[data-resume]")) { failures = 0; showStopped(); poll(); }
    if (on("[data-theme-toggle]")) toggleTheme();
    if (!on("details.pick")) document.querySelectorAll("details.pick[open]").forEach((pick) => { pick.open = false; });
  });

  const toggleTheme = () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("llmgw-theme", root.dataset.theme); } catch { /* it holds for this page */ }
    document.dispatchEvent(new Event("llmgw:theme"));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("llmgw:theme")));

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelectorAll("details.pick[open]").forEach((pick) => { pick.open = false; });
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const find = document.querySelector("[data-find]");
    if (find) { event.preventDefault(); find.focus(); find.select(); }
  });

  document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });
  timer = setTimeout(poll, VISIBLE_MS);
})();
