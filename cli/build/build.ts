// `npm run cli:build`: cli/dist, which is what is published: the program with all it imports, and
// the licences of what is not ours.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle, stop, type Metafile, type Plugin } from 'esbuild';

const CLI = join(import.meta.dirname, '..');
const CHECKOUT = join(CLI, '..');
/** The oldest Node it runs on; as in package.json. */
const TARGET = 'node20.12';

/** zod brings its messages in every language; it speaks English unless it is told otherwise. */
const ONE_LANGUAGE: Plugin = {
  name: 'one-language',
  setup(bundling) {
    bundling.onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({ contents: 'export {};' }));
  },
};

/**
 * Empties cli/dist and fills it again. Resolves with what went into it, paths relative to the
 * checkout.
 */
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
      // What `berth --help` does not need is in files of its own.
      splitting: true,
      chunkNames: 'part-[hash]',
      // Names are kept: a stack that somebody reports is to be read.
      minifySyntax: true,
      minifyWhitespace: true,
      plugins: [ONE_LANGUAGE],
      legalComments: 'none',
      charset: 'utf8',
      metafile: true,
      logLevel: 'warning',
      // Packages in CommonJS ask for Node's own modules in this way.
      banner: {
        js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
      },
      // ws looks for two packages that would make it faster; the program is whole without them.
      define: { 'process.env.WS_NO_BUFFER_UTIL': '"1"', 'process.env.WS_NO_UTF_8_VALIDATE': '"1"' },
    });
    return metafile;
  } finally {
    // esbuild works in a process of its own, which would stay for as long as this one.
    await stop();
  }
}

/** Folders of the npm packages that are bundled, relative to the checkout, sorted. */
function packagesIn({ inputs }: Metafile): string[] {
  const found = Object.keys(inputs).map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  return [...new Set(found.filter((path) => path !== undefined))].sort();
}

/** Throws when a package has no licence to show. */
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
