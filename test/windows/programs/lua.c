/* lua.c - runs a script of Lua; its crate has the library alone. */
/* SPDX-License-Identifier: MIT */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    lua_State *state = luaL_newstate();

    if (state == NULL || argc < 2) return 2;
    luaL_openlibs(state);
    lua_createtable(state, argc, 0);
    for (int i = 1; i < argc; i++) {
        lua_pushstring(state, argv[i]);
        lua_rawseti(state, -2, i - 1);
    }
    lua_setglobal(state, "arg");
    if (luaL_dofile(state, argv[1]) != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
        return 1;
    }
    lua_close(state);
    return 0;
}
