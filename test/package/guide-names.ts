/**
 * The names of the reader's own application that a page uses, as declarations. Everything else a block has to import, or an earlier
 * block of the page declares it.
 */
export const namesOfTheReader: Record<string, string[]> = {
  'access.md': [
    'const user: { id: string }',
    'function freshToken(): Promise<string>',
    'function show(data: unknown): void',
  ],
  'adapters.md': [
    'const requireAdmin: import("express").RequestHandler',
    'const Bun: { serve(options: { idleTimeout: number; fetch(request: Request, server: Bun.Server): unknown }): void }',
    'namespace Bun { interface Server { requestIP(request: Request): { address: string } | null } }',
    'const Deno: { serve(handler: (request: Request, info: Deno.ServeHandlerInfo) => Response | Promise<Response>): void }',
    'namespace Deno { interface ServeHandlerInfo { remoteAddr: { hostname: string } } }',
  ],
  'channels.md': ['const id: string', 'const token: string'],
  'client.md': [
    'const user: { id: string }',
    'const session: { token(asked: { refresh: boolean; signal: AbortSignal }): Promise<string> }',
    'const signal: AbortSignal',
    'const url: string',
    'const signedUrl: string',
    'function show(at: number): void',
    'function reloadOrder(): Promise<void>',
    'function reload(channels: readonly string[]): void',
    'function badge(state: string, nextRetryAt: number | null): void',
    'function store(event: { id: string; data: unknown }): Promise<void>',
    'function log(...words: unknown[]): void',
  ],
  'history.md': ['function show(text: string): void', 'function append(data: unknown): void'],
  'load-then-follow.md': ['function loadOrder(id: string): Promise<object>', 'function show(order: object): void'],
  'mdns.md': [
    'function show(service: unknown): void',
    'function hide(name: string): void',
    'function showOnly(services: unknown): void',
  ],
  'publishing.md': ['function currentToken(): Promise<string>', 'const data: object', 'const shipment: { id: number }'],
  'react.md': [
    'interface Order { id: string; shipped?: boolean }',
    'function fetchOrders(): Promise<Record<string, Order>>',
    'function Board(props: { orders: Record<string, Order> }): import("react").ReactNode',
    'const user: { id: string }',
    'const auth: { token(): Promise<string> }',
  ],
  'redux.md': [
    'interface Order { id: string }',
    'function loadOrders(): { type: string }',
    'const orders: (state: unknown, action: { type: string }) => unknown',
  ],
  'rights.md': [
    'function userOf(request: import("node:http").IncomingMessage): Promise<{ id: string; sessionEndsAt: number } | null>',
  ],
  'snapshots.md': [
    'const database: { orderByChannel(channel: string): Promise<object> }',
    'function showOrder(order: unknown): void',
  ],
  'tanstack-query.md': [
    'function fetchOrders(): Promise<Orders>',
    'function applyEvent(orders: Orders, event: AnyEvent<Events>): Orders',
  ],
  'types.md': ['const id: string', 'const url: string', 'function show(at: number): void'],
  'vue.md': ['interface Order { id: string }', 'function fetchOrders(shop: string): Promise<Record<string, Order>>'],
  'without-a-bundler.md': ['function show(data: unknown): void'],
  'write-a-source.md': ['function readSensors(): Promise<{ sensor: string; value: number }[]>'],
}

/** The name in a declaration. */
export function nameOf(declaration: string): string {
  return /^\w+ (\w+)/.exec(declaration)?.[1] ?? declaration
}
