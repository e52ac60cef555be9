// Bundles the guest daemon into one ESM file, for the image build and the fake driver. Writes no
// files. Does not run in the guest.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { BRIDGE_VERSION } from '@berth/protocol/agent-errors.ts';
import * as wire from '@berth/protocol/calls/wire.ts';
import { build, stop, type Plugin } from 'esbuild';

export { GUEST_NODE_FLAGS } from './machine/node-flags.ts';

interface GuestDaemonBundle {
  /** An ECMAScript module that needs only Node 24. */
  code: Uint8Array;
  /** SHA-256 of `code`, lowercase hex. The same sources give the same bytes in any folder. */
  sha256: string;
}

const ENTRY = fileURLToPath(new URL('main.ts', import.meta.url));
const BRIDGE_ENTRY = fileURLToPath(new URL('bridge/program/main.ts', import.meta.url));

/** Replaces the module that derives the wire from the schemas by its values. */
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

/** Perl as text, without comments but with the numbers of its lines. */
const perlAsText: Plugin = {
  name: 'perl-as-text',
  setup: (bundle) => {
    bundle.onLoad({ filter: /\.pl$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace(/^[ \t]*#.*$/gm, ''),
      loader: 'text',
    }));
  },
};

let underWay = 0;

/** Bundles `main.ts`, or another entry, with all its imports. */
export async function bundleGuestDaemon(entry: string = ENTRY): Promise<GuestDaemonBundle> {
  return bundleOnce(entry, {});
}

/** Bundles the bridge of agent sessions. `version`: an earlier one, for tests. */
export async function bundleBridge(version: number = BRIDGE_VERSION): Promise<GuestDaemonBundle> {
  return bundleOnce(BRIDGE_ENTRY, { BERTH_BRIDGE_VERSION: String(version) });
}

async function bundleOnce(entry: string, define: Record<string, string>): Promise<GuestDaemonBundle> {
  underWay += 1;
  try {
    return await bundle(entry, define);
  } finally {
    underWay -= 1;
    if (underWay === 0) {
      // The esbuild process would otherwise live as long as this process.
      await stop();
    }
  }
}

async function bundle(entry: string, define: Record<string, string>): Promise<GuestDaemonBundle> {
  const result = await build({
    entryPoints: [entry],
    // Base of the paths named in the output.
    absWorkingDir: fileURLToPath(new URL('../..', import.meta.url)),
    bundle: true,
    define,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    write: false,
    logLevel: 'silent',
    plugins: [wireAsData, perlAsText],
  });
  const code = result.outputFiles[0]?.contents;
  if (code === undefined) throw new Error('esbuild gave no output');

  return { code, sha256: createHash('sha256').update(code).digest('hex') };
}
