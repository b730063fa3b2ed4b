// deno-lint-ignore-file no-console -- standard output is how it answers
/** What a program costs that imports the package. */

import "../../../mod.ts";

console.log(Deno.memoryUsage().rss);
