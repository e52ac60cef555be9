// Preloaded in a test file's process: moves it into the file's control group.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

const { BERTH_TEST_CPU_ACCOUNT: folder } = process.env;
if (folder !== undefined) writeFileSync(join(folder, 'cgroup.procs'), String(process.pid));
