// A model server for tests without the internet: Anthropic Messages and OpenAI Responses on one
// port, scripted by the prompt, so that parallel tests do not meet.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import * as anthropic from './anthropic.ts';
import * as openai from './openai.ts';
import { stream, type StreamForm } from './reply.ts';
import { planOf, type Conversation, type Plan } from './script.ts';

/** A call of the model; side calls have no script and are not recorded. */
interface ModelCall {
  path: string;
  prompt: string;
  /** Value of `authorization` or `x-api-key`. */
  credential: string | null;
}

export class ModelServer {
  readonly calls: ModelCall[] = [];
  readonly #server: Server;
  readonly #spent = new Map<string, number>();

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<ModelServer> {
    const models = new ModelServer();
    await new Promise<void>((resolve) => models.#server.listen(0, '127.0.0.1', resolve));
    return models;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Number of calls for prompts that contain the text. */
  callsFor(text: string): number {
    return this.calls.filter(({ prompt }) => prompt.includes(text)).length;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    if (request.method === 'HEAD') return void response.end();
    if (request.method === 'GET' && pathname === '/v1/models')
      return sendJson(response, 200, { object: 'list', data: [], has_more: false });

    if (request.method !== 'POST') return sendJson(response, 404, anthropic.anthropicError(404));

    if (pathname === '/v1/messages/count_tokens') return sendJson(response, 200, { input_tokens: 10 });
    if (pathname === '/v1/messages') {
      const body = (await json(request)) as anthropic.MessagesRequest;
      const plan = this.#plan(request, pathname, anthropic.conversationOf(body));
      if (body.stream === true)
        return reply(response, plan, anthropic.messageStream(body.model), anthropic.anthropicError);
      if (plan.end === 'complete') return sendJson(response, 200, anthropic.messageOf(body.model, plan));
      return reply(response, { ...plan, parts: [] }, anthropic.messageStream(body.model), anthropic.anthropicError);
    }
    if (pathname === '/v1/responses') {
      const body = (await json(request)) as openai.ResponsesRequest;
      const plan = this.#plan(request, pathname, openai.conversationOf(body));
      return reply(response, plan, openai.responseStream(), openai.openAiError);
    }
    sendJson(response, 404, openai.openAiError(404));
  }

  #plan(request: IncomingMessage, path: string, conversation: Conversation): Plan {
    const { authorization, 'x-api-key': apiKey } = request.headers;
    const credential = authorization ?? (typeof apiKey === 'string' ? apiKey : null);
    if (conversation.prompt !== null) this.calls.push({ path, prompt: conversation.prompt, credential });
    return planOf(conversation, this.#spent);
  }
}

async function reply(
  response: ServerResponse,
  plan: Plan,
  form: StreamForm,
  errorOf: (status: number) => object,
): Promise<void> {
  if (typeof plan.end === 'object') return sendJson(response, plan.end.status, errorOf(plan.end.status));
  await stream(response, plan, form);
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
