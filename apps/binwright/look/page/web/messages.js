// What a person should know first: why the page may not show what is, and what is wrong. Messages
// name moments and not durations: a screen reader reads aloud what changes.

import { clock, plural } from "./format.js";

const PROBLEMS = {
  reading: () => "Reading the group's topics.",
  missing: (view) => `There is no group “${view.group}” on this Kafka yet. This page shows it as soon as its controller has made its topics.`,
  unreachable: () => "Kafka cannot be reached.",
};

/** Return what to say of a view: {level, text} each. */
export function messagesOf(view) {
  const found = [];
  const say = (level, text) => found.push({ level, text });
  if (view.problem) {
    const known = view.problem.kind === "unreachable" && view.term !== null ? " What is shown is the last that was read." : "";
    const why = view.problem.kind === "reading" ? "" : ` (${view.problem.text})`;
    say(view.problem.kind === "reading" ? "note" : "fault", PROBLEMS[view.problem.kind](view) + known + why);
    return found;
  }
  const ago = (seconds) => clock(Math.round(view.at_ms - 1000 * seconds));
  const silent = view.consumers.filter((c) => c.state === "silent");
  if (view.state === "empty") say("note", "The group's topic is there, and nothing has been reported on it yet.");
  else if (!view.consumers.length) say("fault", "No consumer runs.");
  else if (view.state === "silent") {
    const since = Math.min(...silent.map((c) => c.silent_s));
    say("fault", `No consumer has reported since ${ago(since)}. What is shown is as old.`);
  } else if (silent.length) say("fault", `${plural(silent.length, "consumer")} of ${view.consumers.length} ${silent.length === 1 ? "has" : "have"} not reported lately.`);
  if (view.unread.length) say("fault", `${plural(view.unread.length, "partition")} ${view.unread.length === 1 ? "is" : "are"} read by no consumer.`);
  if (view.hot.length) say("fault", `${plural(view.hot.length, "partition")} ${view.hot.length === 1 ? "gets" : "get"} more than a consumer sustains, and ${view.hot.length === 1 ? "falls" : "fall"} behind.`);
  const refused = view.tables.filter((table) => table.state === "refused").length;
  if (refused) say("fault", `${plural(refused, "table")} ${refused === 1 ? "takes" : "take"} nothing: see the faults below.`);
  if (view.state !== "empty" && view.rates_stale) {
    say("fault", view.rates_age_s === null
      ? "No monitor has measured this group's topics: rates and lag are unknown, and blocks are equally wide."
      : `No monitor has measured since ${ago(view.rates_age_s)}: rates and lag are as old.`);
  }
  return found;
}

export const lostMessage = (answered, view, why) => ({
  level: "fault",
  text: `The server of this page has not answered since ${clock(answered)} (${why}). ` +
    (view ? `What is shown is from ${clock(view.at_ms)}. ` : "") + "The page goes on by itself when it is back.",
});
