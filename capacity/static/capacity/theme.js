// Before the first paint: the theme that was chosen, else the system's.
(() => {
  let chosen = null;
  try { chosen = localStorage.getItem("llmgw-theme"); } catch { /* storage may be refused */ }
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  document.documentElement.classList.add("scripted");
})();
