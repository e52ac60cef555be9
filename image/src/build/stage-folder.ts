// Cached intermediate results of a build: `<cache>/stages/<name>-<key>`, complete or absent. The
// key covers all inputs.
import { mkdir, readFile, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { nullIf } from '@berth/os/errors.ts';
import { sha256Of } from './digest.ts';

/** Number of results kept per name; only an older checkout needs older ones. */
const KEPT = 2;

/** Key of a stage: a digest of its inputs and of the source files that make it. */
export async function stageKey(inputs: unknown, sourceFiles: readonly string[]): Promise<string> {
  const sources = await Promise.all(sourceFiles.map((file) => readFile(file, 'utf8')));
  return sha256Of(JSON.stringify([inputs, sources])).slice(0, 24);
}

/**
 * Returns the stage's folder, made by `make` if absent. `make` fills an empty folder in the work
 * folder, which is renamed once complete: a killed build leaves no partial stage. Call with the
 * build lock held.
 */
export async function ensureStage(
  folders: { stagesFolder: string; workFolder: string },
  name: string,
  key: string,
  make: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(folders.stagesFolder, `${name}-${key}`);
  const found = await stat(folder).catch(nullIf('ENOENT'));
  if (!found) {
    const unfinished = join(folders.workFolder, `stage-${name}`);
    await mkdir(unfinished, { recursive: true });
    await make(unfinished);
    await mkdir(folders.stagesFolder, { recursive: true });
    await rename(unfinished, folder);
  }
  const now = new Date();
  await utimes(folder, now, now);
  await dropOldest(folders.stagesFolder, name);
  return folder;
}

async function dropOldest(stagesFolder: string, name: string): Promise<void> {
  const names = (await readdir(stagesFolder)).filter((each) => each.startsWith(`${name}-`));
  const aged = await Promise.all(
    names.map(async (each) => ({ path: join(stagesFolder, each), at: (await stat(join(stagesFolder, each))).mtimeMs })),
  );
  for (const old of aged.toSorted((a, b) => b.at - a.at).slice(KEPT))
    await rm(old.path, { recursive: true, force: true });
}
