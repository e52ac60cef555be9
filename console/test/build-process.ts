// Process of a test: builds the console into the folder that the argument names, and prints it.
import { ensureConsole } from '../build/build.ts';

const [cacheFolder = ''] = process.argv.slice(2);
console.log(await ensureConsole({ cacheFolder, signal: new AbortController().signal }));
