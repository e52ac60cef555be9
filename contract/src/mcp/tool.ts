// A tool of the MCP endpoint.
import type { Route } from '../route/route.ts';
import type { McpToolset } from './endpoint.ts';

export interface McpTool {
  name: string;
  /** Short name for people. */
  title: string;
  /** For the model: what the tool does, and what to do next. */
  description: string;
  toolset: McpToolset;
  route: Route;
  hints: McpHints;
}

/** Hints for clients that ask people before a call. Every absent hint is false. */
interface McpHints {
  readOnly?: true;
  /** May change or delete something that exists. */
  destructive?: true;
  idempotent?: true;
  /** Reaches systems outside the service, such as a model or the internet. */
  openWorld?: true;
}
