// Runs inside the lab machine: an order of the runner, with deadlines that fit this machine.
//   node main.ts ORDER-FILE
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { slowness } from '@berth/os/slowness.ts';
import type { Order } from '../order.ts';

const order = process.argv[2] ?? '';
const { steps } = JSON.parse(readFileSync(order, 'utf8')) as Order;
const factor = Math.ceil(slowness());
console.log(`• this machine is ${factor} times slower than the reference: deadlines last longer by that`);
const environment = {
  ...process.env,
  LAB_ORDER: order,
  BERTH_LAB_SLOWNESS: String(factor),
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('slow-time.ts', import.meta.url))}`,
  NODE_COMPILE_CACHE: '/srv/tmp/node-compile',
};
const failed: string[] = [];
for (const { name, command } of steps) {
  console.log(`== ${name}`);
  const startedAt = performance.now();
  const child = spawn('/bin/sh', ['-c', command], { stdio: ['ignore', 'inherit', 'inherit'], env: environment });
  const [code] = (await once(child, 'exit')) as [number | null];
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`== ${name}: ${code === 0 ? 'ok' : `FAILED with ${code ?? 'a signal'}`}, ${seconds} s`);
  if (code !== 0) failed.push(name);
}
console.log(`${steps.length - failed.length} of ${steps.length} steps passed`);
process.exitCode = failed.length === 0 ? 0 : 1;
