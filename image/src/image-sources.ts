// Which image was built from which sources: a small file per recipe and given manifest. An image is
// named after its content, which only a build knows.
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readIfPresent, writeDurably } from '@berth/os/durable-file.ts';
import { sha256Of } from './build/digest.ts';
import { manifestDigest, type Manifest } from './build/manifest.ts';
import type { Recipe } from './build/recipe.ts';
import { ImageError, openImage, type Image } from './image-folder.ts';

interface Source {
  cacheFolder: string;
  key: string;
}

/** The key includes a given manifest, but not the versions that the archive has at the time. */
export function sourceKeyOf(recipe: Recipe, given: Manifest | null): string {
  return sha256Of(JSON.stringify(given ? [recipe.hash, manifestDigest(given)] : [recipe.hash])).slice(0, 24);
}

export function imageFolder(cacheFolder: string, imageId: string): string {
  return join(cacheFolder, 'image', imageId);
}

const fileOf = ({ cacheFolder, key }: Source): string => join(cacheFolder, 'image-sources', key);

type Found = { image: Image } | { image?: undefined; folder: string; fault: ImageError };

/** The image of the sources if present and intact, its fault if damaged, else null. */
export async function imageOfSource(source: Source, signal: AbortSignal): Promise<Found | null> {
  const imageId = (await readIfPresent(fileOf(source)))?.trim() ?? '';
  if (!/^[0-9a-f]{24}$/.test(imageId)) return null;
  const folder = imageFolder(source.cacheFolder, imageId);
  try {
    return { image: await openImage(folder, { verify: 'remembered', signal }) };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return (await readIfPresent(join(folder, 'image.json'))) === null ? null : { folder, fault: error };
  }
}

/** After a crash before this, the next build publishes the same image again. */
export async function noteImageOfSource(source: Source, imageId: string): Promise<void> {
  await mkdir(dirname(fileOf(source)), { recursive: true, mode: 0o755 });
  await writeDurably(fileOf(source), `${imageId}\n`, 0o644);
}
