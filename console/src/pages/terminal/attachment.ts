// A screen's connection to a program in the sandbox: bytes both ways, size, token, end.
import { BerthError, type SandboxTerminal, type TerminalSize } from '@berth/sdk';
import { OutputText } from '../../rules/terminal/output.ts';
import { Flow, resizeInMs, type TerminalEvent } from '../../rules/terminal/attachment.ts';
import { berth, session } from '../../session/client.ts';

/** The session replaces its token long before the end; the connection needs it only by then. */
const RENEW_EVERY_MS = 60_000;

interface AttachmentOptions {
  sandboxId: string;
  /** null: the program of the agent. */
  command: string | null;
  /** Whether a new connection finds the same shell. */
  lasting: boolean;
  size: TerminalSize;
  /** Calls `shown` once the text is on the screen. */
  write: (text: string, shown: () => void) => void;
  /** Not called after {@link Attachment.close}. */
  onEvent: (event: TerminalEvent) => void;
}

export class Attachment {
  readonly #options: AttachmentOptions;
  readonly #abort = new AbortController();
  #terminal: SandboxTerminal | undefined;
  #keys: WritableStreamDefaultWriter<Uint8Array | string> | undefined;
  /** Keys to be sent. */
  #typed = '';
  #size: TerminalSize;
  #sentAt = 0;
  #resizing: ReturnType<typeof setTimeout> | undefined;

  constructor(options: AttachmentOptions) {
    this.#options = options;
    this.#size = options.size;
    void this.#run();
  }

  /**
   * Sends keys of the same task as one frame, and drops them while too many are unsent, as any
   * terminal does: queries in hostile output cause replies without end.
   */
  type(keys: string): void {
    if ((this.#keys?.desiredSize ?? 0) <= this.#typed.length) return;
    if (this.#typed === '') queueMicrotask(() => this.#send());
    this.#typed += keys;
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    if (this.#terminal === undefined || this.#resizing !== undefined) return;
    const send = (): void => {
      this.#resizing = undefined;
      this.#sentAt = performance.now();
      this.#terminal?.resize(this.#size);
    };
    this.#resizing = setTimeout(send, resizeInMs(this.#sentAt, performance.now()));
  }

  close(): void {
    this.#abort.abort();
  }

  #send(): void {
    // A closed terminal reports its end by an event.
    this.#keys?.write(this.#typed).catch(() => undefined);
    this.#typed = '';
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    const { sandboxId, command, lasting, size, onEvent } = this.#options;
    let renewal: ReturnType<typeof setInterval> | undefined;
    try {
      const token = await session.token();
      // The sandbox may have fallen asleep since the page saw it awake. Only the person wakes it.
      const program = command === null ? { agent: true } : { command };
      const options = { ...size, ...program, mayWake: false, signal };
      const terminal = await berth.sandboxes.streams(sandboxId).terminal(options);
      this.#terminal = terminal;
      this.#keys = terminal.writable.getWriter();
      renewal = this.#renewToken(terminal, token);
      onEvent({ type: 'opened' });
      // Changed while connecting.
      if (this.#size !== size) this.resize(this.#size);
      await this.#show(terminal);
      const { exitCode } = await terminal.exited;
      if (!signal.aborted) onEvent({ type: 'exited', exitCode });
    } catch (error) {
      if (signal.aborted) return;
      const { code, message } = error instanceof BerthError ? error : { code: 'unknown', message: String(error) };
      onEvent({ type: 'failed', code, message, lasting });
    } finally {
      clearInterval(renewal);
      clearTimeout(this.#resizing);
      this.#keys = undefined;
    }
  }

  /** The service closes a terminal whose token expires. */
  #renewToken(terminal: SandboxTerminal, first: string): ReturnType<typeof setInterval> {
    let sent = first;
    return setInterval(async () => {
      const token = await session.token();
      if (token === sent || token === '') return;
      sent = token;
      terminal.renew(token);
    }, RENEW_EVERY_MS);
  }

  async #show(terminal: SandboxTerminal): Promise<void> {
    const flow = new Flow();
    const text = new OutputText();
    const reader = terminal.readable.getReader();
    for (;;) {
      const { value: bytes } = await reader.read();
      if (bytes === undefined) return;
      if (flow.received(bytes.byteLength)) terminal.pause();
      this.#options.write(text.decode(bytes), () => {
        if (flow.confirmed(bytes.byteLength)) terminal.resume();
      });
    }
  }
}
