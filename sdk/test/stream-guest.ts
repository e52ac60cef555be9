// The sandbox end of streams behind the real service: local commands, an echoing terminal and
// echoing ports.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import type { Duplex } from 'node:stream';
import {
  bytesFrames,
  COMMAND_STREAM,
  controlFrame,
  FrameReader,
  outputFrame,
  TERMINAL_FRAME,
} from '@berth/protocol/terminal-frames.ts';

const FRAME_BYTES = 65_535;

export class StreamGuest {
  /** Requested targets, in order. */
  readonly targets: string[] = [];
  /** Control frames, in order. */
  readonly orders: unknown[] = [];
  readonly streams = new Set<Duplex>();
  readonly running = new Set<ChildProcess>();
  /** Input of all programs. */
  typed = '';
  /** Bytes sent to the client. */
  sentBytes = 0;
  /** Whether back-pressure of the client was seen. */
  heldBack = false;

  /** For the `stream` of an ExecFront. */
  readonly answer = (_vmId: string, target: string) => (stream: Duplex) => {
    this.targets.push(target);
    this.streams.add(stream);
    stream.once('close', () => this.streams.delete(stream));
    // Only a terminal hangs up; a tunnel has two directions.
    if (target.startsWith('terminal')) stream.once('end', () => stream.destroy());
    const query = new URL(target, 'http://guest').searchParams;
    if (!target.startsWith('terminal')) stream.pipe(stream);
    else if (query.get('tty') === 'false') this.#runCommand(stream, query.get('command') ?? '');
    else this.#openTerminal(stream);
  };

  /** Ends open streams. */
  close(): void {
    for (const stream of this.streams) stream.destroy();
  }

  #runCommand(stream: Duplex, command: string): void {
    const child = spawn('/bin/sh', ['-c', command], { detached: true });
    this.running.add(child);
    const { stdin, stdout, stderr } = child;
    stdin.on('error', () => undefined);
    stdin.once('close', () => stream.resume());
    for (const [number, output] of [
      [COMMAND_STREAM.stdout, stdout],
      [COMMAND_STREAM.stderr, stderr],
    ] as const) {
      output.on('data', (chunk: Buffer) => {
        for (let at = 0; at < chunk.length; at += FRAME_BYTES)
          this.#send(stream, outputFrame(number, chunk.subarray(at, at + FRAME_BYTES)), [stdout, stderr]);
      });
    }
    const reader = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.bytes) {
        this.typed += content.toString('latin1');
        if (content.length === 0 || stdin.write(content) || stdin.destroyed) return;
        stream.pause();
        stdin.once('drain', () => stream.resume());
        return;
      }
      const order = this.#order(content);
      if (order.end === true) stdin.end();
      if (order.signal !== undefined) process.kill(-(child.pid as number), order.signal);
    });
    stream.on('data', (chunk: Buffer) => reader.push(chunk));
    child.once('close', (code, signal) => {
      this.running.delete(child);
      const exit = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      stream.end(controlFrame(signal === null ? { exit } : { exit, signal }));
    });
    stream.once('close', () => {
      if (this.running.has(child)) process.kill(-(child.pid as number), 'SIGKILL');
      // A child exits only after its outputs were read.
      stdout.resume();
      stderr.resume();
    });
  }

  /** Exits with 0 on Ctrl-D, or by a signal. */
  #openTerminal(stream: Duplex): void {
    const reader = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.control) {
        const { signal } = this.#order(content);
        if (signal !== undefined) stream.end(controlFrame({ exit: 128 + constants.signals[signal], signal }));
        return;
      }
      this.typed += content.toString('latin1');
      if (content.includes(4)) stream.end(controlFrame({ exit: 0 }));
      else if (content.length > 0) stream.write(bytesFrames(content));
    });
    stream.on('data', (chunk: Buffer) => reader.push(chunk));
  }

  #order(content: Buffer): { end?: true; signal?: NodeJS.Signals } {
    const order = JSON.parse(content.toString('utf8')) as { end?: true; signal?: NodeJS.Signals };
    this.orders.push(order);
    return order;
  }

  #send(stream: Duplex, frame: Uint8Array, outputs: readonly NodeJS.ReadableStream[]): void {
    this.sentBytes += frame.length;
    if (stream.destroyed || stream.write(frame)) return;
    this.heldBack = true;
    for (const output of outputs) output.pause();
    stream.once('drain', () => {
      for (const output of outputs) output.resume();
    });
  }
}
