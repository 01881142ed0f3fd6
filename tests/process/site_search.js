// Runs Sphinx's own search over a built site: `node site_search.js SITE QUERY…` prints the pages that each query finds, best first.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const ignored = () => {};
const context = {
  console,
  document: { addEventListener: ignored, getElementById: () => null, documentElement: { dataset: {} } },
  location: {},
  localStorage: { getItem: ignored, setItem: ignored },
  DOCUMENTATION_OPTIONS: { FILE_SUFFIX: ".html", LINK_SUFFIX: ".html" },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _ready: ignored,
};
// In a browser, the names of `window` are global.
context.window = context;
vm.createContext(context);
for (const name of ["_static/language_data.js", "_static/searchtools.js"]) {
  vm.runInContext(fs.readFileSync(path.join(site, name), "utf8"), context, { filename: name });
}
const index = fs.readFileSync(path.join(site, "searchindex.js"), "utf8");
context.text = index.replace(/^Search\.setIndex\(/, "").replace(/\)\s*;?\s*$/, "");
context.queries = queries;
const found = vm.runInContext(
  `(() => {
    Search._index = eval("(" + text + ")");
    return queries.map((query) => {
      const results = Search._performSearch(...Search._parseQuery(query));
      return [...new Set(results.reverse().map((result) => result[0]))];
    });
  })()`,
  context,
);
console.log(JSON.stringify(found));
