// Resolves the recipe's package names to the archive's newest versions and writes the manifest.
import type { ArchiveRecord, ChosenPackage, PrivateApt } from './apt.ts';
import { archiveRecords, chooseClosure, updateIndices } from './apt.ts';
import type { Manifest, ManifestPackage, PackageUse } from './manifest.ts';
import { formatManifest, parseManifest } from './manifest.ts';
import type { Recipe } from './recipe.ts';

/** Packages marked essential by the distribution, in apt's pattern language. */
const ESSENTIAL = '?essential';

export async function resolveManifest(apt: PrivateApt, recipe: Recipe, signal: AbortSignal): Promise<Manifest> {
  await updateIndices(apt, signal);
  const essential = await chooseClosure(apt, [ESSENTIAL], signal);
  const root = await chooseClosure(apt, [ESSENTIAL, ...recipe.packages], signal);
  const tools = await chooseClosure(apt, recipe.tools, signal);
  // The kernel package depends on initramfs tools and an init for a bare host; only the kernel
  // itself is wanted.
  const kernelName = new RegExp(`^${recipe.kernel.replace(/^linux-image-/, 'linux-image-[0-9][^-]*-')}$`);
  const kernel = (await chooseClosure(apt, [recipe.kernel], signal)).filter((each) => kernelName.test(each.name));
  if (kernel.length !== 1) throw new Error(`${recipe.kernel} does not lead to exactly one kernel package`);

  const uses = new Map<string, { chosen: ChosenPackage; uses: PackageUse[] }>();
  const lists: [PackageUse, ChosenPackage[]][] = [
    ['essential', essential],
    ['root', root],
    ['tools', tools],
    ['kernel', kernel],
  ];
  for (const [use, chosenList] of lists) {
    for (const chosen of chosenList) {
      const key = `${chosen.name}=${chosen.version}`;
      const entry = uses.get(key) ?? { chosen, uses: [] };
      entry.uses.push(use);
      uses.set(key, entry);
    }
  }
  const records = new Map<string, ArchiveRecord>();
  for (const record of await archiveRecords(apt, [...uses.keys()], signal))
    records.set(`${record.name}=${record.version}`, record);
  const packages = [...uses].map(([key, entry]) => manifestEntry(apt, entry.chosen, records.get(key), entry.uses));
  const manifest: Manifest = {
    format: 1,
    suite: recipe.suite,
    architecture: recipe.architecture,
    recipeHash: recipe.hash,
    node: { version: recipe.node.version, sha256: recipe.node.sha256 },
    npm: { version: recipe.npm.version, sha256: recipe.npm.sha256 },
    agents: recipe.agents.map(({ id, package: name, version, integrity }) => ({
      id,
      package: name,
      version,
      integrity,
    })),
    packages,
  };
  return parseManifest(formatManifest(manifest), 'the resolved manifest');
}

function manifestEntry(
  apt: PrivateApt,
  chosen: ChosenPackage,
  record: ArchiveRecord | undefined,
  uses: PackageUse[],
): ManifestPackage {
  if (!record || record.architecture !== chosen.architecture)
    throw new Error(`The archive's index has no record of ${chosen.name} ${chosen.version} (${chosen.architecture})`);

  // Longer address first: one may be a prefix of the other.
  const archives = (['debian', 'security'] as const).toSorted((a, b) => apt.source[b].length - apt.source[a].length);
  const archive = archives.find((each) => chosen.uri.startsWith(apt.source[each]));
  if (archive === undefined)
    throw new Error(`apt takes ${chosen.name} from an address outside the archive: ${chosen.uri}`);
  return {
    name: record.name,
    version: record.version,
    architecture: record.architecture as ManifestPackage['architecture'],
    archive,
    poolPath: chosen.uri.slice(apt.source[archive].length),
    sizeBytes: record.sizeBytes,
    sha256: record.sha256,
    uses,
  };
}
