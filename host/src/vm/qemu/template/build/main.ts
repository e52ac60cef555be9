// Entry point for setup: probes the accelerator and builds an image's template, with a log line per
// step.
//   node main.ts build|probe --cache-dir DIR --image-folder DIR [--guest-cidr CIDR]
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openImage } from '@berth/image/image-folder.ts';
import { messageOf } from '@berth/os/errors.ts';
import { readHostPlatform } from '../../machine/host-platform.ts';
import { readQemuVersion } from '../../machine/qemu-version.ts';
import { ensureProbe, ensureTemplate, type BuildOrder } from './build.ts';

const USAGE = 'usage: main.ts build|probe --cache-dir DIR --image-folder DIR [--guest-cidr CIDR]';

async function run(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      'cache-dir': { type: 'string' },
      'image-folder': { type: 'string' },
      'guest-cidr': { type: 'string', default: '10.200.0.0/16' },
    },
  });
  const [verb] = positionals;
  if (
    (verb !== 'build' && verb !== 'probe') ||
    positionals.length !== 1 ||
    values['cache-dir'] === undefined ||
    values['image-folder'] === undefined
  )
    throw new Error(USAGE);

  const signal = stopSignal();
  const order: BuildOrder = {
    cacheFolder: resolve(values['cache-dir']),
    image: await openImage(resolve(values['image-folder']), { verify: 'remembered', signal }),
    version: await readQemuVersion(),
    host: await readHostPlatform(),
    guestCidr: values['guest-cidr'],
    report: (message) => console.log(message),
    signal,
  };
  if (verb === 'probe') {
    const { accelerator, reason } = await ensureProbe(order);
    console.log(`accelerator: ${accelerator} (${reason})`);
    return;
  }
  const { template, probe, built } = await ensureTemplate(order);
  console.log(`accelerator: ${probe.accelerator} (${probe.reason})`);
  console.log(`template: ${template.templateId} ${built ? 'was built' : 'exists'} in ${template.folder}`);
}

/** Aborts at the first SIGTERM or SIGINT: partial work is removed before the process exits. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));

  return stop.signal;
}

try {
  await run(process.argv.slice(2));
} catch (error) {
  console.error(`berth template: ${messageOf(error)}`);
  process.exitCode = 1;
}
