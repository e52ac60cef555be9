// A manifest that the caller gives instead of the archive's newest versions.
import { readFile } from 'node:fs/promises';
import { ImageError } from './image-folder.ts';
import { parseManifest, type Manifest } from './build/manifest.ts';
import type { Recipe } from './build/recipe.ts';

/** Throws {@link ImageError} if the manifest belongs to another recipe. */
export async function readGivenManifest(path: string, recipe: Recipe): Promise<Manifest> {
  const manifest = parseManifest(await readFile(path, 'utf8'), path);
  if (manifest.recipeHash !== recipe.hash) {
    const programs = (['node', 'npm'] as const).filter((name) => manifest[name].version !== recipe[name].version);
    const differences = programs.map((name) => `${name} ${manifest[name].version}, here ${recipe[name].version}`);
    const [given, here] = [manifest, recipe].map(({ agents }) => agents.map(({ id }) => id).join(', ') || 'none');
    if (given !== here) differences.push(`agents ${given}, here ${here}`);
    const differ = differences.join('; ');
    throw new ImageError(
      `${path} belongs to another recipe (${manifest.recipeHash.slice(0, 12)}, ` +
        `this checkout has ${recipe.hash.slice(0, 12)}${differ === '' ? '' : `: ${differ}`}); ` +
        'the same packages would yield a different image. ' +
        'Use the checkout that created it, or build without a manifest.',
    );
  }
  return manifest;
}
