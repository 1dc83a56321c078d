/** Records of Netty's leak detector as numbers of calling contexts. */
package io.lucce.netty;
