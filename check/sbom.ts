// `npm run sbom`: a bill of materials in CycloneDX JSON, from the lock file. `-- --manifest FILE`
// adds the packages of a guest image: `<cache>/image/<id>/manifest.json`.
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { parseManifest } from '../image/src/build/manifest.ts';
import {
  billOfMaterials,
  lockedHashes,
  withCarriedPrograms,
  withGuestImage,
  withHashes,
} from './source/bill-of-materials.ts';
import { ROOT } from './source/tree.ts';

const { values } = parseArgs({ options: { manifest: { type: 'string' } } });
// The pinned npm: older ones have no `sbom`.
const npm = join(ROOT, 'node_modules/npm/bin/npm-cli.js');
// All packages, also with NODE_ENV=production.
const options = ['--sbom-format=cyclonedx', '--package-lock-only', '--include=dev'];
const text = execFileSync(process.execPath, [npm, 'sbom', ...options], {
  cwd: ROOT,
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const hashes = lockedHashes(JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')));
const bom = withCarriedPrograms(withHashes(billOfMaterials.parse(JSON.parse(text)), hashes));
const file = values.manifest;
const complete = file === undefined ? bom : withGuestImage(bom, parseManifest(await readFile(file, 'utf8'), file));
console.log(JSON.stringify(complete, null, 2));
