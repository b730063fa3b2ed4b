/** Endpoints: what they mean, and whether they can be used at all. No I/O. */

import { isIPv4, isIPv6 } from "node:net";

/** An endpoint of TCP. */
export interface TcpEndpoint {
  readonly transport: "tcp";
  /** As libzmq takes it. */
  readonly text: string;
  /** An address, an IPv6 one without its brackets; a name; or `*`. */
  readonly host: string;
  /** What `host` is. */
  readonly hostKind: "ipv4" | "ipv6" | "name" | "any";
  /** 0 where the system chooses one. */
  readonly port: number;
}

/** An endpoint of Unix domain sockets. */
export interface IpcEndpoint {
  readonly transport: "ipc";
  /** As libzmq takes it. */
  readonly text: string;
  /** The socket's file. */
  readonly path: string;
}

/** A checked endpoint. */
export type Endpoint = TcpEndpoint | IpcEndpoint;

/** The most bytes of a socket's path: what `sun_path` holds, less its NUL. */
export const MAX_IPC_PATH: number = Deno.build.os === "darwin" ? 103 : 107;

/**
 * Reads and checks an endpoint.
 *
 * libzmq itself takes some that cannot work, such as port 70000, which it wraps around, and reports
 * others late or never.
 *
 * @param text Such as `tcp://127.0.0.1:5555`, `tcp://[::1]:5555`, `tcp://*:*` or `ipc:///run/load.sock`.
 * @param use Only a socket that binds can take a wildcard.
 * @throws {RangeError} If it cannot be used; the message says why.
 */
export function parseEndpoint(text: string, use: "bind" | "connect"): Endpoint {
  const [scheme, rest] = split(text);
  // A NUL would end the text for libzmq, and no endpoint has any of the others.
  if (/[\0-\x20\x7f]/.test(text)) throw refusal(text, use, "it has a blank or a control character");
  switch (scheme) {
    case "tcp":
      return parseTcp(text, rest, use);
    case "ipc":
      return parseIpc(text, rest, use);
    case "inproc":
      throw refusal(text, use, "no other process or worker could reach it");
    default:
      throw refusal(text, use, "not an endpoint of tcp:// or ipc://");
  }
}

/** Whether only this machine can reach a bound endpoint. A name counts if it is `localhost`. */
export function isLoopback(endpoint: Endpoint): boolean {
  if (endpoint.transport === "ipc") return true;
  const { host, hostKind } = endpoint;
  switch (hostKind) {
    case "ipv4":
      return host.startsWith("127.");
    case "ipv6":
      return isLoopbackIpv6(host);
    case "name":
      return host.toLowerCase() === "localhost";
    case "any":
      return false;
  }
}

/**
 * Whether the socket needs ZMQ_IPV6. As in SGLang an address does and a name does not: with the
 * option on, libzmq would look for IPv6 addresses of the name only, should it have any.
 */
export function needsIpv6(endpoint: Endpoint): boolean {
  return endpoint.transport === "tcp" && endpoint.hostKind === "ipv6";
}

/**
 * Whether the endpoint's host has to be looked up in the network. libzmq does that in its own thread,
 * which then cannot be stopped for as long as the look-up lasts.
 */
export function needsLookup(endpoint: Endpoint): boolean {
  return endpoint.transport === "tcp" && endpoint.hostKind === "name" && !isLoopback(endpoint);
}

function parseTcp(text: string, rest: string, use: "bind" | "connect"): TcpEndpoint {
  const colon = rest.lastIndexOf(":");
  if (colon < 0) throw refusal(text, use, "it has no port");
  const port = parsePort(text, rest.slice(colon + 1), use);
  const name = rest.slice(0, colon);
  const bracketed = name.startsWith("[") && name.endsWith("]");
  const host = bracketed ? name.slice(1, -1) : name;
  const hostKind = bracketed ? "ipv6" : kindOf(host);
  switch (hostKind) {
    case "any":
      if (use === "connect") throw refusal(text, use, "a wildcard is for binding");
      break;
    case "ipv6":
      if (!bracketed) throw refusal(text, use, "an IPv6 address goes into brackets");
      if (!isIPv6(host)) throw refusal(text, use, `${host} is not an IPv6 address`);
      break;
    case "name":
      checkName(text, host, use);
      break;
  }
  return { transport: "tcp", text, host, hostKind, port };
}

function kindOf(host: string): TcpEndpoint["hostKind"] {
  if (host === "*") return "any";
  if (isIPv4(host)) return host === "0.0.0.0" ? "any" : "ipv4";
  return host.includes(":") ? "ipv6" : "name";
}

function parsePort(text: string, port: string, use: "bind" | "connect"): number {
  const wildcard = port === "*" || /^0+$/.test(port);
  if (wildcard && use === "bind") return 0;
  if (wildcard) throw refusal(text, use, "a wildcard port is for binding");
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) > 65535) {
    throw refusal(text, use, `port ${JSON.stringify(port)} is not a number from 1 to 65535`);
  }
  return Number(port);
}

function checkName(text: string, host: string, use: "bind" | "connect"): void {
  if (host === "") throw refusal(text, use, "it has no host");
  // What ends in a number is an address, and this one is not: no name may look like that.
  if (/(^|\.)[0-9]+\.?$/.test(host)) throw refusal(text, use, `${host} is not an IPv4 address`);
  if (!/^[A-Za-z0-9_]([A-Za-z0-9_.-]*)$/.test(host)) {
    throw refusal(text, use, `${JSON.stringify(host)} is not a host`);
  }
}

function parseIpc(text: string, path: string, use: "bind" | "connect"): IpcEndpoint {
  if (path === "") throw refusal(text, use, "it has no path");
  if (path === "*") throw refusal(text, use, "ipc:// has no wildcard; name a path");
  if (path.startsWith("@")) {
    throw refusal(text, use, "an abstract socket has no file whose mode could keep others out");
  }
  const length = new TextEncoder().encode(path).length;
  if (length > MAX_IPC_PATH) {
    throw refusal(
      text,
      use,
      `its path has ${length} bytes, and a socket's at most ${MAX_IPC_PATH}`,
    );
  }
  return { transport: "ipc", text, path };
}

function isLoopbackIpv6(host: string): boolean {
  // URL brings the many ways to write an address down to one. It knows no zones.
  const canonical = new URL(`http://[${host.replace(/%.*$/, "")}]/`).hostname;
  return canonical === "[::1]" || /^\[::ffff:7f[0-9a-f]{2}:/.test(canonical);
}

function split(text: string): [scheme: string, rest: string] {
  const at = text.indexOf("://");
  return at < 0 ? ["", text] : [text.slice(0, at), text.slice(at + 3)];
}

function refusal(text: string, use: "bind" | "connect", reason: string): RangeError {
  return new RangeError(`Cannot ${use} ${JSON.stringify(text)}: ${reason}`);
}
