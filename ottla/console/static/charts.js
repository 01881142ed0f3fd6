// Charts, drawn by uPlot. A figure names its source:
//   <figure class="chart" data-chart="URL" data-every-s="2"> returns {"at_ms": …, "values": {name: number}};
//   a name that ends with "/s" is a counter, drawn as the rate between two readings.
//   <figure class="chart" data-history="URL" data-empty="TEXT"> returns {"at_s": […], "series": {name: […]}, "step_s": …}
//   and is read again after each step; a pause of more than three steps is a gap in the line.
//   <figure class="chart" data-points='{"at_s": […], "series": {name: […]}}'> is drawn as it is.
"use strict";

(() => {
  const MAX_POINTS = 900;
  const FEW_POINTS = 60;
  const COLOURS = ["#3b7ddd", "#d9822b", "#2a9d6f", "#b0529e", "#7a6ff0", "#c0392b"];

  function units(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1e9) return (value / 1e9).toFixed(2) + " G";
    if (size >= 1e6) return (value / 1e6).toFixed(2) + " M";
    if (size >= 1e4) return (value / 1e3).toFixed(1) + " k";
    return Number.isInteger(value) ? String(value) : value.toFixed(1);
  }

  // The text of a tick, which has no more digits than it needs.
  function tickText(value) { return units(value).replace(/\.0+(?= |$)/, ""); }

  function pad(number, digits = 2) { return String(number).padStart(digits, "0"); }

  // The time of day as exactly as ticks that are `step` seconds apart need it; days have their date.
  function clockText(at, step) {
    const date = new Date(at * 1000);
    const isMidnight = !date.getHours() && !date.getMinutes() && !date.getSeconds() && !date.getMilliseconds();
    if (step >= 86400 || (isMidnight && step >= 60)) return `${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
    const text = `${pad(date.getHours())}:${pad(date.getMinutes())}`;
    if (step >= 60) return text;
    return `${text}:${pad(date.getSeconds())}` + (step >= 1 ? "" : `.${pad(date.getMilliseconds(), 3)}`);
  }

  // A new chart that grows shows a minute, so that its first points do not fill it; a chart of given points shows all of them.
  function timeRange(isGrowing) {
    // Not the limits that uPlot passes: with one point they are a day apart.
    return (plot) => {
      const times = plot.data[0];
      const low = times[0] ?? 0;
      const high = times.at(-1) ?? 60;
      if (isGrowing) return [Math.min(low, high - 60), high];
      return high > low ? [low, high] : [low - 30, high + 30];
    };
  }

  function draw(figure, names, data, isGrowing = true) {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--muted").trim();
    const line = style.getPropertyValue("--line").trim();
    const axis = { font: "12px system-ui, sans-serif", stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const options = {
      width: Math.max(260, figure.clientWidth - 2),
      height: Number(figure.dataset.height || 170),
      // Half of the last tick's text is beyond the axis.
      padding: [null, 34, null, null],
      cursor: { y: false },
      axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map(tickText) }],
      scales: { x: { range: timeRange(isGrowing) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.1 : 1] } },
      series: [{}, ...names.map((name, index) => ({
        label: name, stroke: COLOURS[index % COLOURS.length], width: 1.6, value: (_, value) => units(value),
        spanGaps: false, points: { show: !isGrowing && data[0].length <= FEW_POINTS, size: 4, fill: COLOURS[index % COLOURS.length] },
      }))],
    };
    options.axes[0] = { ...axis, space: 80, values: (_, ticks, axisIndex, space, step) => ticks.map((tick) => clockText(tick, step)) };
    const isShort = () => data[0].length > 1 && data[0].at(-1) - data[0][0] < 10;
    options.series[0] = { label: document.documentElement.dataset.time, value: (_, at) => at ? `${clockText(at, 86400)} ${clockText(at, isShort() ? 0.001 : 1)}` : "–" };
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
      } catch { /* The page itself reports that the cluster does not respond. */ }
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
      } catch { /* The page itself reports that the cluster does not respond. */ }
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
        draw(figure, Object.keys(points.series), [points.at_s, ...Object.values(points.series)], false);
      }
    }
  }

  document.addEventListener("ottla:page", (event) => prepare(event.detail));
  prepare(document);
})();
