// The order of search results: Sphinx's weights, and pages about the project's past and measurements last.
"use strict";
var Scorer = {
  score: ([docname, title, anchor, descr, score]) => {
    if (docname.startsWith("decisions/")) return score - 1000;
    if (["changelog", "performance", "scale"].includes(docname)) return score - 500;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
