// Bundles the guest daemon into one file that runs on a bare Node in the guest. Writes nothing to disk.
import { relative } from 'node:path';
import { build } from 'esbuild';

/** The bundle's text. The same sources give the same text, wherever the checkout is. */
export async function bundleGuest(entry: string, projectFolder: string): Promise<string> {
  const result = await build({
    absWorkingDir: projectFolder,
    entryPoints: [relative(projectFolder, entry)],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    // A dependency written for CommonJS may call `require` for one of Node's own modules.
    banner: { js: "import { createRequire as __createRequire } from 'node:module';\nconst require = __createRequire(import.meta.url);" },
    legalComments: 'inline',
    logLevel: 'silent',
  });
  const file = result.outputFiles[0];
  if (!file || result.outputFiles.length !== 1) throw new Error('The guest daemon did not bundle into one file');
  return file.text;
}
