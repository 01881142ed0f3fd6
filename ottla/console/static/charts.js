// Charts, drawn by uPlot. A figure names its source:
//   <figure class="chart" data-chart="URL" data-every-s="2"> returns {"at_ms": …, "values": {name: number}};
//   a name that ends with "/s" is a counter, drawn as the rate between two readings.
//   <figure class="chart" data-history="URL" data-empty="TEXT"> returns {"at_s": […], "series": {name: […]}, "step_s": …}
//   and is read again after each step; a pause of more than three steps is a gap in the line.
//   <figure class="chart" data-points='{"at_s": […], "series": {name: […]}}'> is drawn as it is.
"use strict";

(() => {
  const MAX_POINTS = 900;
  const COLOURS = ["#3b7ddd", "#d9822b", "#2a9d6f", "#b0529e", "#7a6ff0", "#c0392b"];

  function units(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1e9) return (value / 1e9).toFixed(2) + " G";
    if (size >= 1e6) return (value / 1e6).toFixed(2) + " M";
    if (size >= 1e4) return (value / 1e3).toFixed(1) + " k";
    return Number.isInteger(value) ? String(value) : value.toFixed(1);
  }

  function draw(figure, names, data) {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--muted").trim();
    const line = style.getPropertyValue("--line").trim();
    const axis = { font: "12px system-ui, sans-serif", stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const options = {
      width: Math.max(260, figure.clientWidth - 2),
      height: Number(figure.dataset.height || 170),
      cursor: { y: false },
      axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map(units) }],
      // A new chart shows a minute, so that its first points do not fill it.
      scales: { x: { range: (_, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } },
      series: [{}, ...names.map((name, index) => ({
        label: name, stroke: COLOURS[index % COLOURS.length], width: 1.6, value: (_, value) => units(value),
        spanGaps: false, points: { show: false },
      }))],
    };
    const isLong = () => data[0].length > 1 && data[0].at(-1) - data[0][0] > 100000;
    const time = (_, ticks) => ticks.map((tick) => isLong() ? new Date(tick * 1000).toLocaleDateString([], { month: "numeric", day: "numeric" })
      : new Date(tick * 1000).toLocaleTimeString([], { hour12: false }));
    options.axes[0] = { ...axis, values: time, space: 80 };
    options.series[0] = { value: (_, at) => at ? new Date(at * 1000).toLocaleString([], isLong() ? { hour12: false } : { hour12: false, timeStyle: "medium" }) : "–" };
    return new uPlot(options, data, figure);
  }

  function live(figure) {
    const names = [];
    const data = [[]];
    let plot = null;
    let last = null;

    function add(reading) {
      const shown = Object.keys(reading.values);
      if (!plot) {
        names.push(...shown);
        names.forEach(() => data.push([]));
      }
      const seconds = last ? (reading.at_ms - last.at_ms) / 1000 : 0;
      if (last && seconds <= 0) return;
      data[0].push(reading.at_ms / 1000);
      names.forEach((name, index) => {
        const value = reading.values[name];
        const before = last?.values[name];
        const isCounter = name.endsWith("/s");
        const point = !isCounter ? value ?? null
          : before === undefined || value === undefined ? null : Math.max(0, (value - before) / seconds);
        data[index + 1].push(point);
      });
      if (data[0].length > MAX_POINTS) data.forEach((column) => column.shift());
      last = reading;
      if (plot) plot.setData(data);
      else plot = draw(figure, names, data);
    }

    async function read() {
      if (!figure.isConnected) return;
      try {
        const answer = await fetch(figure.dataset.chart);
        if (answer.ok) add(await answer.json());
      } catch { /* The page itself reports that the cluster does not answer. */ }
      setTimeout(read, Number(figure.dataset.everyS || 2) * 1000);
    }
    read();
    addEventListener("resize", () => plot?.setSize({ width: Math.max(260, figure.clientWidth - 2), height: plot.height }));
  }

  // Points with an empty one in each gap, so that no line crosses it.
  function withGaps(points) {
    const columns = [points.at_s, ...Object.values(points.series)];
    const result = columns.map(() => []);
    points.at_s.forEach((at, row) => {
      if (row && at - points.at_s[row - 1] > 3 * points.step_s) {
        result.forEach((column, index) => column.push(index ? null : at - points.step_s));
      }
      columns.forEach((column, index) => result[index].push(column[row]));
    });
    return result;
  }

  function history(figure) {
    let plot = null;
    async function read() {
      if (!figure.isConnected) return;
      let pause = 10;
      try {
        const answer = await fetch(figure.dataset.history);
        if (answer.ok) {
          const points = await answer.json();
          pause = points.step_s;
          const data = withGaps(points);
          figure.querySelector(".empty")?.remove();
          if (!points.at_s.length) {
            const note = document.createElement("p");
            note.className = "empty";
            note.textContent = figure.dataset.empty;
            figure.append(note);
          } else if (plot) {
            plot.setData(data);
          } else {
            plot = draw(figure, Object.keys(points.series), data);
          }
        }
      } catch { /* The page itself reports that the cluster does not answer. */ }
      setTimeout(read, pause * 1000);
    }
    read();
    addEventListener("resize", () => plot?.setSize({ width: Math.max(260, figure.clientWidth - 2), height: plot.height }));
  }

  function prepare(root) {
    for (const figure of root.querySelectorAll("figure.chart:not([data-drawn])")) {
      figure.dataset.drawn = "1";
      if (figure.dataset.chart) {
        live(figure);
      } else if (figure.dataset.history) {
        history(figure);
      } else {
        const points = JSON.parse(figure.dataset.points);
        draw(figure, Object.keys(points.series), [points.at_s, ...Object.values(points.series)]);
      }
    }
  }

  document.addEventListener("ottla:page", (event) => prepare(event.detail));
  prepare(document);
})();
