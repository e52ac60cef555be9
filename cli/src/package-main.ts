// Commands of the package, bundled by build/build.ts. Host commands only report that they need a
// checkout.
import { clientChapters } from './chapters.ts';
import { unavailableChapter } from './machine/unavailable.ts';
import { run } from './run.ts';

await run([unavailableChapter, ...clientChapters]);
