// Bundles the guest daemon into one ESM file, for the image build and the fake driver. Not part of what runs in the guest.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** How Node is to run the bundle; the image's service says why. */
export const GUEST_NODE_FLAGS = ['--jitless', '--single-threaded', '--no-flush-bytecode'] as const;

export interface GuestDaemonBundle {
  /** One ECMAScript module that needs Node 24 and nothing else. */
  code: Uint8Array;
  /** Of `code`, lowercase hex. The same sources give the same bytes in any folder. */
  sha256: string;
}

/** Bundles `main.ts` with all it imports. */
export async function bundleGuestDaemon(): Promise<GuestDaemonBundle> {
  const result = await build({
    entryPoints: [fileURLToPath(new URL('main.ts', import.meta.url))],
    // Paths that the output names are relative to this.
    absWorkingDir: fileURLToPath(new URL('../..', import.meta.url)),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
  });
  const code = result.outputFiles[0]?.contents;
  if (code === undefined) {
    throw new Error('esbuild gave no output');
  }
  return { code, sha256: createHash('sha256').update(code).digest('hex') };
}
