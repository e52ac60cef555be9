// The manifest: package versions of an image. Defines its format, order and digest. Contains no
// archive address.
import { z } from 'zod';
import { sha256Of } from './digest.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const manifestPackage = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9+.-]+$/),
  version: z.string().regex(/^[0-9A-Za-z.+:~-]+$/),
  architecture: z.enum(['amd64', 'all']),
  /** Archive of the distribution that has it. */
  archive: z.enum(['debian', 'security']),
  /** Path below the archive's address. */
  poolPath: z.string().regex(/^pool\/[\w.+~%/-]+\.deb$/),
  sizeBytes: z.int().positive(),
  sha256,
  /**
   * `essential` is unpacked first, `root` is installed, `kernel` is only unpacked, `tools` builds
   * the image and is not part of it.
   */
  uses: z.array(z.enum(['essential', 'kernel', 'root', 'tools'])).min(1),
});
export type ManifestPackage = z.infer<typeof manifestPackage>;
export type PackageUse = ManifestPackage['uses'][number];

const manifest = z.strictObject({
  format: z.literal(1),
  suite: z.string().min(1),
  architecture: z.literal('amd64'),
  /**
   * Digest of the recipe it was resolved for; another recipe makes another image of the same
   * packages.
   */
  recipeHash: sha256,
  node: z.strictObject({ version: z.string().min(1), sha256 }),
  npm: z.strictObject({ version: z.string().min(1), sha256 }),
  /** Coding agents, as npm packages. Absent in manifests of older checkouts. */
  agents: z
    .array(
      z.strictObject({
        id: z.string().min(1),
        package: z.string().min(1),
        version: z.string().min(1),
        integrity: z.string().min(1),
      }),
    )
    .default([]),
  packages: z.array(manifestPackage).min(1),
});
export type Manifest = z.infer<typeof manifest>;

/** Parses and validates a manifest. Throws with the location of the error. */
export function parseManifest(text: string, source: string): Manifest {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${source} is not JSON: ${(error as Error).message}`, { cause: error });
  }
  const result = manifest.safeParse(value);
  if (!result.success)
    throw new Error(`${source} is not a manifest of this version:\n${z.prettifyError(result.error)}`);
  return result.data;
}

/** Canonical form: equal content gives equal bytes. */
export function formatManifest(value: Manifest): string {
  const packages = value.packages
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((each) => ({ ...each, uses: each.uses.toSorted() }));
  return `${JSON.stringify({ ...value, packages }, null, 2)}\n`;
}

export function manifestDigest(value: Manifest): string {
  return sha256Of(formatManifest(value));
}

export function packagesFor(value: Manifest, ...uses: PackageUse[]): ManifestPackage[] {
  return value.packages
    .filter((each) => each.uses.some((use) => uses.includes(use)))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** File name of the package, as the archive and apt write it. */
export function debFileName(each: ManifestPackage): string {
  return `${each.name}_${each.version.replaceAll(':', '%3a')}_${each.architecture}.deb`;
}
