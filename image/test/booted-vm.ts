// Boots an image in a dedicated QEMU, for tests: emulated CPU, throw-away disk, user-mode network.
// Differs from how Berth runs VMs.
import { guestExecResult } from '@berth/protocol/calls/exec.ts';
import { guestHealth } from '@berth/protocol/calls/identity.ts';
import { GUEST_NETWORK, GUEST_PORT } from '@berth/protocol/guest.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../protocol/test/free-port.ts';
import type { Image } from '../src/image-folder.ts';

export interface BootedVm {
  /**
   * Runs a command through the guest daemon. A broken connection returns the output so far, and the
   * next call waits for the daemon.
   */
  run(command: string): Promise<{ stdout: string; stderr: string; exitCode: number }>;
  /** Bytes written by the VM to its disk. */
  diskWrites(): Promise<number>;
  idle(milliseconds: number): Promise<void>;
  /** Sends a call to the guest daemon; returns any response. */
  call(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }>;
  /** From now on calls carry this secret. */
  useSecret(secret: string): void;
  stop(): Promise<void>;
}

/** Sends a command to QEMU's control socket. */
async function queryQemu(path: string, command: string, signal: AbortSignal): Promise<unknown> {
  const socket = connect(path);
  try {
    let received = '';
    const answered = async (): Promise<unknown> => {
      for await (const chunk of socket) {
        received += String(chunk);
        for (const line of received.split('\r\n').slice(0, -1)) {
          const message = JSON.parse(line) as { id?: string; return?: unknown };
          if (message.id === 'asked') return message.return;
        }
      }
      throw new Error(`QEMU closed its control socket: ${received}`);
    };
    socket.write(`{"execute":"qmp_capabilities"}\n{"execute":"${command}","id":"asked"}\n`);
    signal.throwIfAborted();
    return await answered();
  } finally {
    socket.destroy();
  }
}

/**
 * Resolves when the guest daemon responds; rejects with the end of the console when the VM exits
 * first. With `disk`, a qcow2 overlay of the image's root, writes are kept.
 */
export async function bootImage(image: Image, folder: string, signal: AbortSignal, disk?: string): Promise<BootedVm> {
  const port = await freePort();
  const { address, gateway, mac } = GUEST_NETWORK;
  const console = join(folder, 'console');
  const control = join(folder, 'qmp');
  // The emulated network needs an address for a resolver beside the gateway; the guest sees only
  // its /30.
  const network =
    `user,id=n,net=169.254.0.16/28,host=${gateway},dns=169.254.0.23,restrict=on,` +
    `hostfwd=tcp:127.0.0.1:${port}-${address}:${GUEST_PORT}`;
  const args = [
    [
      '-M',
      'q35,hpet=off,vmport=off,smbus=off,sata=off,i8042=off,usb=off,graphics=off',
      '-accel',
      'tcg,tb-size=64',
      '-cpu',
      'max',
    ],
    ['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-smp', '1', '-m', '1024'],
    ['-kernel', image.kernelPath, '-initrd', image.initramfsPath, '-append', image.kernelArguments.join(' ')],
    [
      '-drive',
      `if=none,id=d,file=${disk === undefined ? `${image.rootPath},format=raw,snapshot=on` : `${disk},format=qcow2`}`,
    ],
    ['-device', 'virtio-blk-pci,drive=d,romfile='],
    ['-netdev', network, '-device', `virtio-net-pci,netdev=n,mac=${mac},romfile=`, '-device', 'virtio-rng-pci'],
    ['-serial', `file:${console}`, '-qmp', `unix:${control},server=on,wait=off`],
  ].flat();
  const stderr = openSync(join(folder, 'stderr'), 'w');
  const qemu = spawn('qemu-system-x86_64', args, { stdio: ['ignore', 'ignore', stderr] });
  closeSync(stderr);
  let ended = false;
  const exited = once(qemu, 'exit').then(() => {
    ended = true;
  });

  let headers: Record<string, string> = {};
  const answers = async (): Promise<boolean> => {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/health`, {
        headers,
        signal: AbortSignal.any([signal, AbortSignal.timeout(5_000)]),
      });
      return guestHealth.safeParse(await response.json()).success;
    } catch {
      signal.throwIfAborted();
      return false; // not yet: the machine boots, or its daemon starts again
    }
  };
  const waitForDaemon = async (): Promise<void> => {
    const deadline = Date.now() + 180_000;
    while (!(await answers())) {
      if (!ended && Date.now() < deadline) {
        await delay(200, undefined, { signal });
        continue;
      }
      const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8').catch(() => '');
      throw new Error(
        `The machine does not answer${ended ? ' and its QEMU ended' : ''}: ${await read('stderr')}\n` +
          (await read('console')).slice(-2000),
      );
    }
  };
  const stop = async (): Promise<void> => {
    qemu.kill('SIGKILL');
    await exited;
  };

  try {
    await waitForDaemon();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    async run(command) {
      await waitForDaemon();
      try {
        const body = JSON.stringify({ command, timeoutSeconds: 120 });
        const response = await fetch(`http://127.0.0.1:${port}/exec`, { method: 'POST', headers, body, signal });
        return guestExecResult.parse(await response.json());
      } catch (error) {
        signal.throwIfAborted();
        return { stdout: '', stderr: String(error), exitCode: -1 };
      }
    },
    async diskWrites() {
      const answer = (await queryQemu(control, 'query-blockstats', signal)) as { stats: { wr_bytes: number } }[];
      return answer.reduce((sum, each) => sum + each.stats.wr_bytes, 0);
    },
    async call(method, path, body) {
      const payload = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, signal, ...payload });
      return { status: response.status, text: await response.text() };
    },
    useSecret(secret) {
      headers = { authorization: `Bearer ${secret}` };
    },
    idle: (milliseconds) => delay(milliseconds, undefined, { signal }),
    stop,
  };
}
