// Runs in the place of a gateway: writes the output of the filter's probe beside its socket.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { filterProbe } from '../../../os/test/service-filter-probe.ts';

const [socketPath = ''] = process.argv.slice(2);
const { stdout, stderr } = spawnSync('perl', ['-e', filterProbe()], { encoding: 'utf8' });
writeFileSync(`${socketPath}.outcome`, stdout + stderr);
process.stdout.write('ready\n');
setInterval(() => undefined, 60_000);
