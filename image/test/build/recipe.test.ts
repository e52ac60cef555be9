import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { loadRecipe } from '../../src/build/recipe.ts';

const RECIPE = join(import.meta.dirname, '../../recipe');

describe('the hash of the recipe', () => {
  let folder: string;
  let guestEntry: string;
  let first: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-recipe-'));
    await cp(RECIPE, join(folder, 'recipe'), { recursive: true });
    guestEntry = join(folder, 'guest.ts');
    await writeFile(guestEntry, "import { text } from './part.ts';\nconsole.log(text);\n");
    await writeFile(join(folder, 'part.ts'), "export const text: string = 'one';\n");
    first = await hash();
  });
  after(() => rm(folder, { recursive: true }));

  const hash = async (): Promise<string> => (await loadRecipe({ folder: join(folder, 'recipe'), guestEntry })).hash;

  /** The hash with a changed file, which is then restored. */
  async function hashWith(path: string, change: (text: string) => string): Promise<string> {
    const text = await readFile(join(folder, path), 'utf8');
    assert.notEqual(change(text), text);
    await writeFile(join(folder, path), change(text));
    try {
      return await hash();
    } finally {
      await writeFile(join(folder, path), text);
    }
  }

  it('is the same for the same recipe, at any time and from any path', async () => {
    await utimes(join(folder, 'recipe/packages.json'), new Date(0), new Date(0));
    await chmod(join(folder, 'recipe/dpkg.cfg'), 0o600);
    assert.equal(await hash(), first);
  });

  const changes: [what: string, path: string, change: (text: string) => string][] = [
    ['a package name', 'recipe/packages.json', (text) => text.replace('"ripgrep"', '"fd-find"')],
    ['the kernel', 'recipe/packages.json', (text) => text.replace('linux-image-cloud-amd64', 'linux-image-amd64')],
    ['a build script', 'recipe/configure.sh', (text) => `${text}true\n`],
    ['a file laid over the root', 'recipe/root/etc/runit/1', (text) => text.replace('size=20%', 'size=21%')],
    ['the script of the initramfs', 'recipe/initramfs/init', (text) => text.replace('noatime', 'relatime')],
    ['a module of the guest daemon', 'part.ts', (text) => text.replace('one', 'two')],
  ];
  for (const [what, path, change] of changes) {
    it(`changes with ${what}`, async () => {
      assert.notEqual(await hashWith(path, change), first);
      assert.equal(await hash(), first);
    });
  }

  it('changes when a script of the root becomes executable or a file is added', async () => {
    await chmod(join(folder, 'recipe/dpkg.cfg'), 0o755);
    assert.notEqual(await hash(), first);
    await chmod(join(folder, 'recipe/dpkg.cfg'), 0o644);
    await writeFile(join(folder, 'recipe/root/etc/added'), '');
    assert.notEqual(await hash(), first);
    await rm(join(folder, 'recipe/root/etc/added'));
    assert.equal(await hash(), first);
  });

  it('does not change with a comment or type of the guest daemon, which its bundle lacks', async () => {
    assert.equal(await hashWith('part.ts', (text) => `// a comment\n${text.replace(': string', '')}`), first);
  });

  it('covers the versions of Node and npm that this checkout pins', async () => {
    const recipe = await loadRecipe({ folder: join(folder, 'recipe'), guestEntry });
    assert.equal(recipe.node.version, process.versions.node);
    assert.match(recipe.npm.version, /^\d+\.\d+\.\d+$/);
    assert.match(recipe.node.sha256, /^[0-9a-f]{64}$/);
  });

  it('is refused with the position of the error when the package list has an unknown field', async () => {
    await assert.rejects(
      hashWith('recipe/packages.json', (text) => text.replace('"suite"', '"suit"')),
      /suit/,
    );
  });
});
