// Build tools that are not part of the image: the guest distribution's mke2fs and others, and the
// unpacked kernel with its module index.
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { OnProgress } from './progress.ts';
import { runInsideRoot } from './inside-root.ts';
import type { ManifestPackage } from './manifest.ts';
import { linkMergedUsr } from './root-stage.ts';
import { unpackDebs } from './unpack.ts';

interface ToolsStage {
  tools: readonly ManifestPackage[];
  kernel: readonly ManifestPackage[];
  debPath: (each: ManifestPackage) => string;
}

/** Paths in a finished stage. */
export interface Tools {
  /** Root for running the tools; has the empty folder `/mnt` for binds. */
  root: string;
  kernelVersion: string;
  vmlinuz: string;
  /** The guest's module tree, `kernel/...` and the index files. */
  modulesFolder: string;
  busybox: string;
}

/** Fills the folder with `tools` and `kernel`. */
export async function makeToolsStage(
  folder: string,
  stage: ToolsStage,
  onProgress: OnProgress,
  signal: AbortSignal,
): Promise<void> {
  let done = 0;
  const total = stage.tools.length + stage.kernel.length;
  const step = (): void =>
    onProgress({ step: 'tools', message: 'Unpack the kernel and the build tools', done: done++, total });
  step();
  const toolsRoot = join(folder, 'tools');
  await mkdir(join(toolsRoot, 'mnt'), { recursive: true });
  await linkMergedUsr(toolsRoot);
  await unpackDebs(stage.tools.map(stage.debPath), toolsRoot, signal, step);
  const kernelRoot = join(folder, 'kernel');
  await mkdir(kernelRoot);
  await linkMergedUsr(kernelRoot);
  await unpackDebs(stage.kernel.map(stage.debPath), kernelRoot, signal, step);
  const version = await onlyName(join(kernelRoot, 'usr/lib/modules'));
  await runInsideRoot(toolsRoot, ['depmod', '--basedir', '/mnt', version], {
    signal,
    writable: { '/mnt': kernelRoot },
  });
}

async function onlyName(folder: string): Promise<string> {
  const names = await readdir(folder);
  const [name] = names;
  if (name === undefined || names.length !== 1)
    throw new Error(`${folder} should hold one kernel's modules, holds: ${names.join(', ')}`);
  return name;
}

export async function openTools(folder: string): Promise<Tools> {
  const modules = join(folder, 'kernel/usr/lib/modules');
  const kernelVersion = await onlyName(modules);
  return {
    root: join(folder, 'tools'),
    kernelVersion,
    vmlinuz: join(folder, 'kernel/boot', `vmlinuz-${kernelVersion}`),
    modulesFolder: join(modules, kernelVersion),
    busybox: join(folder, 'tools/usr/bin/busybox'),
  };
}
