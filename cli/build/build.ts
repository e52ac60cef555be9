// `npm run cli:build`: builds the published package in cli/dist, with the licences of bundled
// packages.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle, stop, type Metafile, type Plugin } from 'esbuild';

const CLI = join(import.meta.dirname, '..');
const CHECKOUT = join(CLI, '..');
/** Oldest supported Node; keep in step with package.json. */
const TARGET = 'node20.12';

/** Drops zod's translations; English is its default. */
const ONE_LANGUAGE: Plugin = {
  name: 'one-language',
  setup(bundling) {
    bundling.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: 'export {};' }));
  },
};

/** Empties and fills cli/dist. Resolves with the bundled inputs, paths relative to the checkout. */
export async function build(): Promise<Metafile> {
  const folder = join(CLI, 'dist');
  rmSync(folder, { recursive: true, force: true });
  const metafile = await bundled(folder);
  const program = join(folder, 'berth.js');
  writeFileSync(program, `#!/usr/bin/env node\n${readFileSync(program, 'utf8')}`, { mode: 0o755 });
  writeFileSync(join(folder, 'LICENSES.txt'), licencesOf(packagesIn(metafile)));
  return metafile;
}

async function bundled(folder: string): Promise<Metafile> {
  try {
    const { metafile } = await bundle({
      absWorkingDir: CHECKOUT,
      entryPoints: { berth: join(CLI, 'src/package-entry.ts') },
      outdir: folder,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: TARGET,
      // Code that `berth --help` does not need is loaded on demand.
      splitting: true,
      chunkNames: 'part-[hash]',
      // Names are kept, for readable stacks in bug reports.
      minifySyntax: true,
      minifyWhitespace: true,
      plugins: [ONE_LANGUAGE],
      legalComments: 'none',
      charset: 'utf8',
      metafile: true,
      logLevel: 'warning',
      // CommonJS packages load Node's modules with `require`.
      banner: {
        js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
      },
      // Stops ws from requiring its two optional native packages.
      define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    });
    return metafile;
  } finally {
    // The esbuild service process would keep this process alive.
    await stop();
  }
}

/** Folders of the bundled npm packages, relative to the checkout, sorted. */
function packagesIn({ inputs }: Metafile): string[] {
  const found = Object.keys(inputs).map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  return [...new Set(found.filter((path) => path !== undefined))].sort();
}

function licencesOf(packages: readonly string[]): string {
  const texts = packages.map((path) => {
    const folder = join(CHECKOUT, path);
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Record<
      string,
      string
    >;
    const file = readdirSync(folder).find((file) => /^licen[cs]e(\.|$)/i.test(file));
    if (file === undefined) throw new Error(`${name} has no file of its licence`);
    return `${name} ${version} (${license})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  return `The program contains these packages.\n\n${texts.join(`\n${'-'.repeat(80)}\n\n`)}`;
}

if (import.meta.main) await build();
