// JSON-RPC with Codex' app-server: calls, and requests and notifications of the server.
import type { AgentProcess, Json } from '../agent-process.ts';
import { jsonOf, textOf } from '../agent-process.ts';

interface ServerEvents {
  notification(method: string, params: Json): void;
  request(id: string | number, method: string, params: Json): void;
}

/** Error that the server returned for a call. */
export class RpcError extends Error {}

export class Rpc {
  readonly #calls = new Map<number, { answered: (message: Json) => void; reject: (error: Error) => void }>();
  readonly #send: AgentProcess['send'];
  readonly #events: ServerEvents;
  #lastId = 0;
  #endReason: string | null = null;

  constructor(send: AgentProcess['send'], events: ServerEvents) {
    this.#send = send;
    this.#events = events;
  }

  call(method: string, params: Json): Promise<Json> {
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    const answered = ({ result, error }: Json): void => {
      if (error === undefined) resolve(jsonOf(result));
      else reject(new RpcError(textOf(jsonOf(error)['message'])));
    };
    this.#request({ method, params }, { answered, reject });
    return promise;
  }

  /** Sends another client's request under an id of its own; `answered` gets the whole response. */
  forward(request: Json, answered: (response: Json) => void): void {
    this.#request(request, { answered, reject: () => undefined });
  }

  notify(method: string): void {
    this.#send({ method });
  }

  respond(id: string | number, result: Json): void {
    this.#send({ id, result });
  }

  refuse(id: string | number, message: string): void {
    this.#send({ id, error: { code: -32_601, message } });
  }

  receive(message: Json): void {
    const { id, method } = message;
    const isRequest = typeof id === 'number' || typeof id === 'string';
    if (typeof method === 'string') {
      const params = jsonOf(message['params']);
      if (isRequest) this.#events.request(id, method, params);
      else this.#events.notification(method, params);
    } else if (typeof id === 'number') {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      call?.answered(message);
    }
  }

  #request(request: Json, call: { answered: (message: Json) => void; reject: (error: Error) => void }): void {
    if (this.#endReason !== null) return call.reject(new Error(this.#endReason));
    this.#lastId += 1;
    this.#calls.set(this.#lastId, call);
    this.#send({ ...request, id: this.#lastId });
  }

  /** Fails all calls, now and later. */
  end(reason: string): void {
    this.#endReason = reason;
    for (const { reject } of this.#calls.values()) reject(new Error(reason));
    this.#calls.clear();
  }
}
