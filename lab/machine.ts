// The lab machine: QEMU with an emulated processor that has AMD's virtualization (SVM with nested
// paging), so that the Debian inside has a real /dev/kvm.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ORDER, PORTS } from './disks/root-files.ts';
import type { RootDisk } from './disks/root-disk.ts';

const CORES = 2;
const MEMORY_MIB = 8_192;
const CONSOLE_LINES = 30;

interface MachineOptions {
  root: RootDisk;
  /** Overlay on the root disk, and the work disk; both keep their changes between starts. */
  overlay: string;
  work: string;
  /** Folder of sockets and logs. */
  folder: string;
  /** Sent to `lab/inside/main.ts`. */
  order: object;
  onLine: (line: string) => void;
  signal: AbortSignal;
}

export class LabMachine {
  /** Exit code of the order. Rejects with the console's last lines if the machine ends before. */
  readonly exitCode: Promise<number>;
  readonly #qemu: ChildProcess;
  readonly #servers: readonly Server[];

  private constructor(qemu: ChildProcess, exitCode: Promise<number>, servers: readonly Server[]) {
    this.#qemu = qemu;
    this.exitCode = exitCode;
    this.#servers = servers;
  }

  static async start(options: MachineOptions): Promise<LabMachine> {
    const { folder, signal } = options;
    const paths = { output: join(folder, 'output'), result: join(folder, 'result'), order: join(folder, 'order.json') };
    const consoleLog = join(folder, 'console.log');
    await writeFile(paths.order, JSON.stringify(options.order));
    const output = await listen(paths.output, (socket) => createInterface(socket).on('line', options.onLine));
    const results: ((code: number) => void)[] = [];
    const result = await listen(paths.result, (socket) =>
      createInterface(socket).once('line', (line) => results.forEach((done) => done(Number(line)))),
    );
    const qemu = spawn('qemu-system-x86_64', argvOf(options, paths, consoleLog), {
      stdio: ['ignore', 'inherit', 'inherit'],
      signal,
      killSignal: 'SIGKILL',
    });
    const exitCode = new Promise<number>((resolve, reject) => {
      results.push(resolve);
      qemu.once('error', reject);
      qemu.once('exit', () => void ended(consoleLog).then(reject, reject));
    });
    exitCode.catch(() => undefined);
    return new LabMachine(qemu, exitCode, [output, result]);
  }

  /** Resolves when the machine is off; a reboot ends it, too. */
  async off(): Promise<void> {
    if (this.#qemu.exitCode === null && this.#qemu.signalCode === null) await once(this.#qemu, 'exit');
  }

  /** Cuts the power: the disks keep what was flushed. */
  async cut(): Promise<void> {
    if (this.#qemu.exitCode === null && this.#qemu.signalCode === null) {
      this.#qemu.kill('SIGKILL');
      await once(this.#qemu, 'exit');
    }
    for (const server of this.#servers) server.close();
  }
}

function argvOf(
  { root, overlay, work }: MachineOptions,
  paths: { output: string; result: string; order: string },
  consoleLog: string,
): string[] {
  const port = (name: keyof typeof PORTS): string[] => [
    ...['-chardev', `socket,id=${name},path=${paths[name]}`],
    ...['-device', `virtserialport,chardev=${name},name=${PORTS[name]}`],
  ];
  return [
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-M', 'q35'],
    ...['-accel', 'tcg,thread=multi,tb-size=1024', '-cpu', 'EPYC,+svm,+npt'],
    ...['-smp', String(CORES), '-m', String(MEMORY_MIB)],
    ...['-kernel', root.kernel, '-initrd', root.initrd],
    ...['-append', 'root=/dev/vda rw console=ttyS0 panic=-1 systemd.show_status=no'],
    ...['-drive', `file=${overlay},format=qcow2,if=virtio`, '-drive', `file=${work},format=raw,if=virtio`],
    ...['-netdev', 'user,id=net,restrict=on'],
    ...['-device', 'virtio-net-pci,netdev=net', '-device', 'virtio-rng-pci'],
    ...['-serial', `file:${consoleLog}`, '-device', 'virtio-serial', ...port('output'), ...port('result')],
    ...['-fw_cfg', `name=${ORDER},file=${paths.order}`],
  ];
}

async function listen(path: string, onSocket: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onSocket);
  server.listen(path);
  await once(server, 'listening');
  return server;
}

async function ended(consoleLog: string): Promise<Error> {
  const text = await readFile(consoleLog, 'latin1').catch(() => '');
  const last = text.trimEnd().split('\n').slice(-CONSOLE_LINES).join('\n');
  return new Error(`the machine ended before its check did; its console's last lines:\n${last}`);
}
