// The chart of a sweep: a figure from the page, in the colours of the theme.
"use strict";
(() => {
  const holder = document.getElementById("sweep-chart"), source = document.getElementById("figure");
  if (!holder || !source) return;
  const wire = JSON.parse(source.textContent);
  const narrow = matchMedia("(max-width: 640px)");

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return new Map(Object.entries(wire.layout.meta.colours).map(([light, name]) => [light, style.getPropertyValue(name).trim() || light]));
  };
  const painted = (value, paint, key) => {
    if (typeof value === "string") return /color$/i.test(key) ? paint.get(value) ?? value : value;
    if (Array.isArray(value)) return value.map((item) => painted(item, paint, key));
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, painted(item, paint, name)]));
    return value;
  };
  const draw = async () => {
    const paint = colours(), layout = { ...painted(wire.layout, paint, ""), autosize: true };
    if (narrow.matches) layout.margin = { l: 48, r: 8, t: 22, b: 40 };
    holder.querySelector(".loading")?.remove();
    await Plotly.react(holder, painted(wire.data, paint, ""), layout, { displayModeBar: false, responsive: true, doubleClick: false });
  };
  document.addEventListener("llmgw:theme", draw);
  narrow.addEventListener("change", draw);
  draw();
})();
