// Bundles the guest daemon into one ESM file, for the image build and the fake driver. Writes
// nothing. Not part of what runs in the guest.
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import * as wire from '@berth/protocol/calls/wire.ts';
import { build, stop, type Plugin } from 'esbuild';

/** How Node is to run the bundle; the image's service says why. */
export const GUEST_NODE_FLAGS = ['--jitless', '--single-threaded', '--no-flush-bytecode'] as const;

export interface GuestDaemonBundle {
  /** One ECMAScript module that needs Node 24 and nothing else. */
  code: Uint8Array;
  /** Of `code`, lowercase hex. The same sources give the same bytes in any folder. */
  sha256: string;
}

const ENTRY = fileURLToPath(new URL('main.ts', import.meta.url));

/** Puts the values of the wire in the place of the module that derives them from the schemas. */
const wireAsData: Plugin = {
  name: 'wire-as-data',
  setup: (bundle) => {
    bundle.onLoad({ filter: /\/protocol\/src\/calls\/wire\.ts$/ }, () => ({
      contents: Object.entries(wire)
        .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
        .join('\n'),
    }));
  },
};

let underWay = 0;

/** Bundles `main.ts`, or another entry, with all it imports. */
export async function bundleGuestDaemon(entry: string = ENTRY): Promise<GuestDaemonBundle> {
  underWay += 1;
  try {
    return await bundle(entry);
  } finally {
    underWay -= 1;
    if (underWay === 0) {
      // esbuild works in a process of its own, which would stay for as long as this one.
      await stop();
    }
  }
}

async function bundle(entry: string): Promise<GuestDaemonBundle> {
  const result = await build({
    entryPoints: [entry],
    // Paths that the output names are relative to this.
    absWorkingDir: fileURLToPath(new URL('../..', import.meta.url)),
    bundle: true,
    loader: { '.pl': 'text' },
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
    plugins: [wireAsData],
  });
  const code = result.outputFiles[0]?.contents;
  if (code === undefined) throw new Error('esbuild gave no output');

  return { code, sha256: createHash('sha256').update(code).digest('hex') };
}
