// A connection to the program of a terminal session, with a person at its keys. For tests.
import type { Socket } from 'node:net';
import { bytesFrames, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { until } from '../daemon.ts';
import { openStream } from '../terminals/connection.ts';
import type { TestSession } from './agent-daemon.ts';

/** A connection to the program of a session. */
export class Connected {
  readonly controls: unknown[] = [];
  readonly #socket: Socket;
  #output = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    const reader = new FrameReader((kind, content) => {
      if (kind === TERMINAL_FRAME.control) this.controls.push(JSON.parse(content.toString('utf8')));
      else this.#output += content.toString('utf8');
    });
    socket.on('data', (chunk: Buffer) => reader.push(chunk));
    socket.once('end', () => socket.end());
  }

  static async open({ agents, id }: TestSession): Promise<Connected> {
    return new Connected(await openStream(agents.daemon, { agent: id, cols: '80', rows: '24' }));
  }

  type(text: string): void {
    this.#socket.write(bytesFrames(Buffer.from(text)));
  }

  /** Waits until the screen has shown the text since the connection; returns the match. */
  async shows(text: RegExp): Promise<RegExpExecArray> {
    await until(`the terminal shows ${text}`, () => text.test(this.#output));
    return text.exec(this.#output) as RegExpExecArray;
  }

  /** Pid of the scripted program, which it has on the screen. */
  async program(): Promise<number> {
    return Number((await this.shows(/scripted agent (\d+)/))[1]);
  }

  async exit(): Promise<unknown> {
    await until('the program exits', () => this.controls.length > 0);
    return this.controls[0];
  }

  close(): void {
    this.#socket.destroy();
  }
}
