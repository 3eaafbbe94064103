// The load chart: a figure from the page or from chart.json, in the colours of the theme.
"use strict";
(() => {
  const holder = document.getElementById("chart"), source = document.getElementById("figure");
  if (!holder || !source) return;
  let wire = JSON.parse(source.textContent), zoomed = false, busy = false;
  const narrow = matchMedia("(max-width: 640px)");

  // Colours and times of the wire's figure → those of the screen.
  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    return new Map(Object.entries(wire.layout.meta.colours).map(([light, name]) => [light, style.getPropertyValue(name).trim() || light]));
  };
  const painted = (value, paint) => {
    if (typeof value === "string") return paint.get(value) ?? value;
    if (Array.isArray(value)) return typeof value[0] === "string" ? value.map((item) => paint.get(item) ?? item) : value;
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, painted(item, paint)]));
    return value;
  };
  const drawn = () => {
    const paint = colours(), start = wire.layout.meta.start;
    const data = wire.data.map((trace) => {
      const { x, y, text, hovertext, customdata, name, ...looks } = trace;
      return { ...painted(looks, paint), y, text, hovertext, customdata, name, x: x.map((at) => at === null ? null : start + at * 1000) };
    });
    const { annotations, ...rest } = wire.layout;
    const layout = { ...painted(rest, paint), annotations: annotations.map((note) => ({ ...note, font: painted(note.font, paint) })) };
    layout.shapes = wire.layout.shapes.map((shape) => ({ ...shape, line: painted(shape.line, paint) }));
    layout.autosize = true;
    layout.uirevision = `${holder.dataset.from} ${holder.dataset.to}`;
    if (narrow.matches) {
      layout.margin = { l: 44, r: 10, t: 22, b: 34 };
      layout.height = 420;
      layout.legend = { ...layout.legend, y: -0.2 };
      layout.annotations = layout.annotations.map((note) => ({ ...note, xanchor: "right", xshift: -2, yanchor: "bottom", text: note.text.split(":")[0] }));
      layout.xaxis = { ...layout.xaxis, nticks: 4 };
    }
    return { data, layout };
  };

  const config = { displaylogo: false, responsive: true, displayModeBar: false, scrollZoom: false, doubleClick: false };
  const draw = async () => {
    const { data, layout } = drawn();
    holder.querySelector(".loading")?.remove();
    await Plotly.react(holder, data, layout, config);
    if (!holder.dataset.wired) wireUp();
  };

  const utc = (moment) => new Date(moment).toISOString().replace(/\.\d+Z$/, "Z");
  const milliseconds = (value) => typeof value === "number" ? value : Date.parse(String(value).replace(" ", "T") + (String(value).endsWith("Z") ? "" : "Z"));
  const go = (from, to) => {
    const url = new URL(location.href);
    url.searchParams.set("from", from);
    url.searchParams.set("to", to);
    location.assign(url);
  };

  const wireUp = () => {
    holder.dataset.wired = "yes";
    holder.on("plotly_click", (event) => {
      const url = event.points.map((point) => point.customdata).find((value) => typeof value === "string" && value.startsWith("/") && !value.startsWith("//"));
      if (url) location.assign(url);
    });
    // a drag writes its range into the address, so that Back and a link to a colleague work
    holder.on("plotly_relayout", (change) => {
      const from = change["xaxis.range[0]"], to = change["xaxis.range[1]"];
      if (from !== undefined && to !== undefined && !zoomed) { zoomed = true; go(utc(milliseconds(from)), utc(Math.max(milliseconds(to), milliseconds(from) + 60000))); }
    });
    holder.on("plotly_doubleclick", () => go("now-6h", "now"));
  };

  const refresh = async () => {
    if (busy || holder.dataset.to !== "now") return;
    busy = true;
    try {
      const query = new URLSearchParams({ from: holder.dataset.from, to: holder.dataset.to });
      const answer = await fetch(`${holder.dataset.url}?${query}`, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.status === 204) return;
      const { figure, sentence } = await answer.json();
      wire = figure;
      document.getElementById("chart-sentence").textContent = sentence;
      await draw();
    } catch { /* the next pass tries again; the top bar tells of an old one */ } finally { busy = false; }
  };

  document.addEventListener("llmgw:passed", refresh);
  document.addEventListener("llmgw:theme", draw);
  narrow.addEventListener("change", draw);
  draw();
})();
