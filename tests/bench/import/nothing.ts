// deno-lint-ignore-file no-console -- standard output is how it answers
/** What any program costs. */

console.log(Deno.memoryUsage().rss);
