// Links to ports of one sandbox.
import type { Calls } from './calls.ts';
import type { CreatePreviewData, Preview } from './generated/raw/index.ts';
import type { CallOptions } from './transport/transport.ts';

export type { Preview };
/** What a link is to: a port, and for whom and how long. */
export type PreviewSpec = CreatePreviewData['body'];

/** Preview links of a sandbox: addresses at which a port of it is seen in a browser. */
export class SandboxPreviews {
  readonly #calls: Calls;
  readonly #sandboxId: string;

  /** Made by the sandbox. */
  constructor(calls: Calls, sandboxId: string) {
    this.#calls = calls;
    this.#sandboxId = sandboxId;
  }

  /**
   * Makes a link: of audience `team` for signed-in members of the org, unless another is asked for.
   */
  async create(spec: PreviewSpec, options: CallOptions = {}): Promise<Preview> {
    const { raw, with: set } = this.#calls;
    const whenLost = 'The link may have been made all the same: list the links before you make another.';
    return (
      await raw.createPreview({ path: { sandboxId: this.#sandboxId }, body: spec, ...set({ ...options, whenLost }) })
    ).preview;
  }

  /** The public links that are neither expired nor revoked, newest first. */
  async list(options: CallOptions = {}): Promise<Preview[]> {
    const { raw, with: set } = this.#calls;
    return (await raw.listPreviews({ path: { sandboxId: this.#sandboxId }, ...set(options) })).previews;
  }

  /** Revokes a public link, within seconds everywhere; doing it again changes nothing. */
  async revoke(previewId: string, options: CallOptions = {}): Promise<Preview> {
    const { raw, with: set } = this.#calls;
    return (await raw.revokePreview({ path: { sandboxId: this.#sandboxId, previewId }, ...set(options) })).preview;
  }
}
