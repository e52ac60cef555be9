// Command line of the image build: `build` and `verify`. Only reads arguments and the environment,
// and prints.
import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { nullIf } from '@berth/os/errors.ts';
import { defaultCacheFolder, selectedAgents } from './config.ts';
import { ensureImage } from './ensure-image.ts';
import type { Image } from './image-folder.ts';
import { openImage } from './image-folder.ts';
import { renderProgress } from './build/progress.ts';

const USAGE = `usage: main.ts build [--manifest FILE] [--cache-dir DIR]   build the guest image unless it exists
       main.ts verify [--cache-dir DIR]                  read every image and compare it with its checksums`;

function allocatedMegabytes(image: Image, signal: AbortSignal): Promise<number> {
  return new Promise((done, reject) => {
    execFile('du', ['--block-size=1', '--summarize', image.folder], { signal }, (error, stdout) => {
      if (error) reject(error);
      else done(Math.round(Number.parseInt(stdout, 10) / 1e6));
    });
  });
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { manifest: { type: 'string' }, 'cache-dir': { type: 'string' } },
  });
  const cacheFolder =
    values['cache-dir'] === undefined ? defaultCacheFolder(process.env) : resolve(values['cache-dir']);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));
  const [command] = positionals;
  if (command === 'build' && positionals.length === 1) {
    const progress = renderProgress(process.stderr);
    const startedMs = performance.now();
    const agents = selectedAgents(process.env);
    const image = await ensureImage({
      cacheFolder,
      onProgress: progress.report,
      signal: stop.signal,
      ...(agents === undefined ? {} : { agents }),
      ...(values.manifest === undefined ? {} : { manifestFile: resolve(values.manifest) }),
    }).finally(progress.end);
    const megabytes = await allocatedMegabytes(image, stop.signal);
    const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
    console.log(`${image.folder}\nkernel ${image.kernelVersion}, ${megabytes} MB on disk, ready after ${seconds} s`);
  } else if (command === 'verify' && positionals.length === 1) {
    const folder = join(cacheFolder, 'image');
    const names = (await readdir(folder).catch(nullIf('ENOENT'))) ?? [];
    if (names.length === 0) throw new Error(`There is no image in ${folder}`);
    for (const name of names) {
      const image = await openImage(join(folder, name), { verify: 'full', signal: stop.signal });
      console.log(`${image.folder}: all checksums match`);
    }
  } else {
    console.error(USAGE);
    process.exitCode = 2;
  }
}

process.umask(0o022);
try {
  await main();
} catch (error) {
  console.error(`image: ${(error as Error).message}`);
  process.exitCode = 1;
}
