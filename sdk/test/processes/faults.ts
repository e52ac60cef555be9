// Failures of requests between the SDK and a service.

interface Fault {
  /** Only requests with this method. */
  method?: string;
  /** Only requests whose path contains this. */
  path: string;
  /** `dropped`: before it is carried out; `lost`: after it; `unavailable`: a response with 503. */
  as: 'dropped' | 'lost' | 'unavailable';
  times?: number;
}

export class Faults {
  readonly #fetch: typeof globalThis.fetch;
  #next: (Fault & { times: number })[] = [];
  /** Called before each request with its method and path. */
  onRequest: (method: string, path: string) => void = () => undefined;

  constructor(fetch: typeof globalThis.fetch) {
    this.#fetch = fetch;
  }

  next(fault: Fault): void {
    this.#next.push({ times: 1, ...fault });
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const method = init?.method ?? 'GET';
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    this.onRequest(method, pathname);
    const fault = this.#next.find((one) => (one.method ?? method) === method && pathname.includes(one.path));
    if (fault !== undefined) fault.times -= 1;
    this.#next = this.#next.filter(({ times }) => times > 0);
    if (fault?.as === 'dropped') throw broken();
    if (fault?.as === 'unavailable')
      return Response.json({ error: { code: 'shutting_down', message: 'it restarts' } }, { status: 503 });
    const response = await this.#fetch(input, init);
    if (fault?.as === 'lost') throw broken();
    return response;
  };
}

function broken(): Error {
  return new TypeError('fetch failed', { cause: new Error('the connection was broken') });
}
