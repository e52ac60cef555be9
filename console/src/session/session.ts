// Session of the signed-in person: exchanges the login cookie for a bearer token, which lives in
// memory only, and replaces the token before it expires or once after a 401.
import { Observed } from '../rules/page/observed.ts';

/** `refused`: the service rejects pages of this origin. */
type SessionState = 'starting' | 'signed-in' | 'signed-out' | 'refused' | 'unreachable';

interface Token {
  text: string;
  refreshAt: number;
  expiresAt: number;
}

/** Share of a token's lifetime after which it is replaced. */
const REFRESH_AFTER = 0.8;

export class Session {
  readonly #fetch: typeof globalThis.fetch;
  readonly #onPerson: (userId: string, isOther: boolean) => void;
  readonly #now: () => number;
  readonly #state = new Observed<SessionState>('starting');
  #token: Token | null = null;
  #refreshing: Promise<void> | null = null;
  #wasSignedIn = false;
  #userId: string | null = null;

  /** @param onPerson called with the person of each token; `isOther`: not that of the page */
  constructor(
    fetch: typeof globalThis.fetch,
    onPerson: (userId: string, isOther: boolean) => void,
    now: () => number = () => performance.now(),
  ) {
    this.#fetch = fetch;
    this.#onPerson = onPerson;
    this.#now = now;
  }

  get state(): SessionState {
    return this.#state.get();
  }

  /** Whether pages have been shown, and may hold the person's input. */
  get wasSignedIn(): boolean {
    return this.#wasSignedIn;
  }

  /** Calls the listener after each change of the state. Returns a function that ends it. */
  readonly subscribe = this.#state.subscribe;

  /** Exchanges the cookie. Concurrent calls share one exchange; never rejects. */
  readonly refresh = async (): Promise<void> => {
    this.#refreshing ??= this.#exchange().finally(() => {
      this.#refreshing = null;
    });
    await this.#refreshing;
  };

  /** Bearer token for a request; empty without a session, which the service rejects with 401. */
  readonly token = async (): Promise<string> => {
    const now = this.#now();
    if (this.#token === null || now >= this.#token.expiresAt) await this.refresh();
    else if (now >= this.#token.refreshAt) void this.refresh();
    return this.#token?.text ?? '';
  };

  /** `fetch` that repeats a request once with a new token if the service rejects its token. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await this.#fetch(input, init);
    if (response.status !== 401) return response;
    await this.refresh();
    if (this.state !== 'signed-in') return response;
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${this.#token?.text ?? ''}`);
    return await this.#fetch(input, { ...init, headers });
  };

  async #exchange(): Promise<void> {
    let response: Response;
    let answer: { access_token?: string; expires_in?: number; user_id?: string };
    try {
      response = await this.#fetch('/auth/session', { method: 'POST' });
      answer = (await response.json()) as typeof answer;
    } catch {
      // A token that is still valid outlives an interruption.
      if (this.#token === null) this.#change('unreachable');
      return;
    }
    const { access_token: text, expires_in: seconds = 0, user_id: userId = null } = answer;
    if (response.ok && userId !== null && this.#userId !== null && userId !== this.#userId) {
      this.#token = null;
      this.#change('signed-out');
      this.#onPerson(userId, true);
    } else if (response.ok && text !== undefined) {
      // Earlier versions of the service do not say whose it is.
      this.#userId = userId ?? this.#userId;
      if (userId !== null) this.#onPerson(userId, false);
      const lifetime = seconds * 1_000;
      const now = this.#now();
      this.#token = { text, refreshAt: now + REFRESH_AFTER * lifetime, expiresAt: now + lifetime };
      this.#change('signed-in');
    } else if (response.status === 401 || response.status === 403) {
      this.#token = null;
      this.#change(response.status === 401 ? 'signed-out' : 'refused');
    } else if (this.#token === null) {
      this.#change('unreachable');
    }
  }

  #change(state: SessionState): void {
    this.#wasSignedIn ||= state === 'signed-in';
    this.#state.set(state);
  }
}
