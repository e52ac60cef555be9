// The command `berth` of the package, bundled by build/build.ts: every command that calls the API.
// Those of the machine say where they run.
import { clientChapters } from './chapters.ts';
import { elsewhereChapter } from './machine/elsewhere.ts';
import { run } from './run.ts';

await run([elsewhereChapter, ...clientChapters]);
